"""Memo task: how the tasks of a query use a memo."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.types import DataType

__all__ = ["MemoTask"]


@dataclass(frozen=True, slots=True)
class MemoTask:
    """How the tasks of a query use a memo. Created on the driver, and pickled.

    Args:
        path: The directory.
        schema: The columns of its files.
        answer: The type of an answer: of the new column, a struct of several, or an array of these with `flatten`.
        function, version: What to write beside each answer. The version is a part of the keys.
        max_age, remember_failures_for, write_every: The options of the memo, in seconds.
        partitions: The number of tasks. All rows of a task have buckets with the same remainder by it.
        in_buckets: Whether the rows are sorted by bucket.
    """

    path: str
    schema: pa.Schema
    answer: DataType
    function: str
    version: str
    max_age: float
    remember_failures_for: float
    write_every: float
    partitions: int
    in_buckets: bool
