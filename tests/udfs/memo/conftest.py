"""Shared by the tests of the memo: a conversion without a JVM."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types as T  # noqa: N812 - the usual name

from udfs._memo.conversion import MemoConversion, MemoTask
from udfs._memo.files import MemoFiles
from udfs._memo.layout import Layout
from udfs._memo.memo import Memo
from udfs._sent.settings import Enrichment

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
def conversion(settings: Any, tmp_path: Path) -> Callable[..., MemoConversion]:
    """Makes the conversion of one task with a memo in `tmp_path`."""

    def make(
        function: Any,
        memo: Memo | None = None,
        *,
        columns: int = 1,
        added: T.StructType = TEMP,
        flatten: Any = False,
        in_buckets: bool = False,
        **more: Any,
    ) -> MemoConversion:
        memo = memo or Memo(str(tmp_path))
        kind: T.DataType = added.fields[0].dataType if len(added) == 1 else added
        layout = Layout("look_up", INPUTS, T.ArrayType(kind) if flatten else kind, ("n",))
        layout.claim(MemoFiles(memo.path))
        made = settings(function, **{"mode": "unordered", **more})
        enrichment = Enrichment(made, added, "UTC", inputs=(0,), flatten=flatten)
        return MemoConversion(enrichment, MemoTask(memo, layout, columns, in_buckets=in_buckets, has_places=False))

    return make


@pytest.fixture
def run(conversion: Any) -> Callable[..., list[dict[str, Any]]]:
    """Runs one task with a memo in `tmp_path`; the rows that come out."""

    def rows(function: Any, *batches: pa.RecordBatch, source: Any = None, **more: Any) -> list[dict[str, Any]]:
        made = conversion(function, columns=batches[0].num_columns - 1, **more)
        return [row for each in made.run(source or iter(batches)) for row in each.to_pylist()]

    return rows


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
