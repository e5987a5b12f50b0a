"""Answers: the columns of a memo's files, and which of several answers for a key counts."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final, Self

import pyarrow as pa
import pyarrow.compute

__all__ = ["ALWAYS", "BUCKETS", "CONTENTS", "Freshness", "compute", "contents_of", "kind_of", "latest"]

compute: Any = pyarrow.compute  # type checkers do not see its functions, which are made at import

# Answers are divided into this many buckets by the hash of their inputs. A task reads one bucket at a time.
BUCKETS: Final = 256

# The metadata of a schema that identifies a memo: the function, its inputs and the type of its answers.
CONTENTS: Final = b"udfs.memo"


@dataclass(frozen=True, slots=True)
class Freshness:
    """Which answers count.

    Attributes:
        since: The earliest time of an answer, in seconds since the epoch.
        failures_since: The earliest time of a failure; `math.inf` if failures are not remembered.
    """

    since: float
    failures_since: float

    @classmethod
    def at(cls, now: float, max_age: float, remember_failures_for: float) -> Self:
        """The instants since when answers and failures are fresh at this time."""
        return cls(now - max_age, now - remember_failures_for if remember_failures_for else math.inf)


ALWAYS: Final = Freshness(-math.inf, -math.inf)


def contents_of(schema: pa.Schema) -> dict[str, Any]:
    """The metadata that identifies a memo with this schema. Empty for a schema of another origin."""
    contents: dict[str, Any] = json.loads((schema.metadata or {}).get(CONTENTS, b"{}"))
    return contents


def kind_of(schema: pa.Schema) -> str:
    """A digest of what identifies the memo."""
    return blake2b((schema.metadata or {}).get(CONTENTS, b""), digest_size=8).hexdigest()


def latest(table: pa.Table, fresh: Freshness, by: tuple[str, ...] = ("key",)) -> pa.Table:
    """The latest fresh answer for each key; with `by=("key", "failed")` also the latest failure."""
    times = table.column("answered_at").cast(pa.int64())
    failed = compute.is_valid(table.column("error"))
    since = compute.if_else(failed, fresh.failures_since * 1e6, fresh.since * 1e6)
    numbers = pa.array(range(table.num_rows), pa.int64())
    rows = pa.table({"key": table.column("key"), "failed": failed, "time": times, "row": numbers})
    rows = rows.filter(compute.greater_equal(compute.cast(times, pa.float64()), since))
    rows = rows.sort_by([("time", "descending")])
    newest = rows.group_by(list(by), use_threads=False).aggregate([("row", "first")])
    return table.take(newest.column("row_first"))
