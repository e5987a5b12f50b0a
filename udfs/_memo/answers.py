"""The answers of one bucket, by key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import pyarrow as pa

from .errors import MemoError
from .files import MemoFiles, holds

__all__ = ["Answer", "Freshness", "answers_of", "latest"]

# How often the files are listed again because one of them was removed meanwhile.
_ATTEMPTS: Final = 10


class Answer(NamedTuple):
    """One answer.

    Attributes:
        values: An array of answers.
        place: The place of this one.
        error: The error of a call that failed, as a struct; None for one that was answered.
    """

    values: pa.Array
    place: int
    error: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Freshness:
    """Which answers count.

    Attributes:
        since: The earliest time of an answer, in seconds since the epoch.
        failures_since: The earliest time of a failure.
    """

    since: float
    failures_since: float

    @classmethod
    def at(cls, now: float, max_age: float, remember_failures_for: float) -> Freshness:
        """What is fresh at this time."""
        return cls(now - max_age, now - remember_failures_for)


def answers_of(files: MemoFiles, bucket: int, freshness: Freshness) -> dict[bytes, Answer]:
    """The latest fresh answer for each key of a bucket.

    Raises:
        MemoError: A file cannot be read.
    """
    tables: dict[str, pa.Table] = {}
    missing: set[str] = set()
    for _ in range(_ATTEMPTS):
        found = len(missing)
        for name in files.names():
            if holds(name, bucket) and name not in tables and name not in missing:
                try:
                    tables[name] = files.read(name, bucket)
                except FileNotFoundError:  # another process has just moved its answers to another file
                    missing.add(name)
        if len(missing) == found:
            return _by_key(pa.concat_tables(tables.values()), freshness) if tables else {}
    raise MemoError(f"the files of the memo {files.path} are removed while they are read: compact it less often")


def latest(table: pa.Table, freshness: Freshness) -> dict[bytes, int]:
    """The row of the latest fresh answer for each key."""
    times = table.column("answered_at").cast(pa.int64()).to_pylist()
    failed = table.column("error").is_valid().to_pylist()
    rows: dict[bytes, int] = {}
    for row, key in enumerate(table.column("key").to_pylist()):
        since = freshness.failures_since if failed[row] else freshness.since
        if times[row] / 1e6 >= since and (key not in rows or times[rows[key]] < times[row]):
            rows[key] = row
    return rows


def _by_key(table: pa.Table, freshness: Freshness) -> dict[bytes, Answer]:
    values = table.column("answer").combine_chunks()
    values = pa.concat_arrays(values.chunks) if isinstance(values, pa.ChunkedArray) else values
    errors = table.column("error")
    return {
        key: Answer(values, row, errors[row].as_py() if errors[row].is_valid else None)
        for key, row in latest(table, freshness).items()
    }
