"""Shared by the tests of the memo: a conversion without a JVM."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types as T  # noqa: N812 - the usual name

from udfs import Memo
from udfs._memo.answers import BUCKETS
from udfs._memo.directory import Directory
from udfs._plan.memo_layout import memo_schema
from udfs._sent.settings import Enrichment, MemoSettings
from udfs._spark_thread.memo_rows import MemoRows, with_answers

INPUTS = T.StructType([T.StructField("n", T.LongType())])
TEMP = T.StructType([T.StructField("temp", T.DoubleType())])


@pytest.fixture
def batch() -> Callable[..., pa.RecordBatch]:
    """Creates a batch of numbers with their buckets: a number's bucket is its remainder by three."""

    def make(*numbers: int | None, **more: Any) -> pa.RecordBatch:
        buckets = pa.array([(n or 0) % 3 for n in numbers], pa.int32())
        return pa.RecordBatch.from_pydict({"n": pa.array(numbers, pa.int64()), **more, "bucket": buckets})

    return make


@pytest.fixture
def task(settings: Any, tmp_path: Path) -> Callable[..., tuple[Enrichment, MemoSettings]]:
    """Makes the settings of one task with a memo in `tmp_path`."""

    def make(
        function: Any,
        memo: Memo | None = None,
        *,
        inputs: T.StructType = INPUTS,
        added: T.StructType = TEMP,
        flatten: Any = False,
        in_buckets: bool = False,
        claims: bool = True,
        **more: Any,
    ) -> tuple[Enrichment, MemoSettings]:
        memo = memo or Memo(str(tmp_path))
        made = settings(function, **{"mode": "unordered", **more})
        enrichment = Enrichment(made, added, "UTC", inputs=(0,), flatten=flatten)
        kind = T.ArrayType(enrichment.output_type) if flatten else enrichment.output_type
        schema = memo_schema("look_up", inputs, kind, ("n",))
        if claims:
            Directory(memo.path, schema).claim()
        seconds = memo.max_age, memo.remember_failures_for, memo.write_every
        return enrichment, MemoSettings(
            memo.path, schema, kind, memo.version, *seconds, partitions=1, in_buckets=in_buckets
        )

    return make


@pytest.fixture
def conversion(task: Any) -> Callable[..., MemoRows]:
    """Makes the conversion of such a task."""
    return lambda *arguments, **more: MemoRows(*task(*arguments, **more), range(BUCKETS))


@pytest.fixture
def run(task: Any) -> Callable[..., list[dict[str, Any]]]:
    """Runs one task with a memo in `tmp_path`; the rows that come out."""

    def rows(function: Any, *batches: pa.RecordBatch, source: Any = None, **more: Any) -> list[dict[str, Any]]:
        out = with_answers(*task(function, **more), iter(source or batches))
        return [row for each in out for row in each.to_pylist()]

    return rows


@pytest.fixture
def directory(tmp_path: Path) -> Callable[[], Directory]:
    """The memo in `tmp_path`, as `conversion` makes it by default."""
    schema = memo_schema("look_up", INPUTS, T.DoubleType(), ("n",))
    return lambda: Directory(str(tmp_path), schema)


@pytest.fixture
def memo(directory: Any) -> Directory:
    """The same, claimed."""
    made: Directory = directory()
    made.claim()
    return made


@pytest.fixture
def answers(directory: Any) -> Callable[..., pa.Table]:
    """Creates answers for numbers, whose bucket is the number modulo 256, and whose key shows it."""

    def make(*numbers: int, answer: float = 0.5, at: float = 1e9, error: str | None = None) -> pa.Table:
        failure = None if error is None else {"type": "Error", "message": error, "attempts": 1, "seconds": 0.0}
        rows = [
            {
                "bucket": number % 256,
                "key": number.to_bytes(16, "big"),
                "inputs": {"n": number},
                "answer": None if error else answer,
                "error": failure,
                "answered_at": round(at * 1e6),
                "function": "look_up",
                "version": "1",
            }
            for number in numbers
        ]
        return pa.Table.from_pylist(rows, directory().schema)

    return make


class Counting:
    """Halves a number, and records the calls."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    async def __call__(self, n: int | None) -> float | None:
        self.calls.append(n)
        return None if n is None else n / 2


@pytest.fixture
def halve() -> Counting:
    """A function that records its calls."""
    return Counting()
