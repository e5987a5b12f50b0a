"""The corners of `tests/operator/test_flink_corners.py` that concern rows of Spark."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import trio
from pyspark.sql import types as T  # noqa: N812 - the usual name

from udfs._sent.settings import Enrichment
from udfs._spark_thread.conversion import ColumnConversion, RowConversion

TEXT = T.StructType([T.StructField("text", T.StringType())])


def values_of(outputs: Iterable[pa.Array | pa.RecordBatch]) -> list[Any]:
    return [value for each in outputs for value in each.to_pylist()]


@pytest.mark.parametrize("instead", [[], ["x"], ["x", "y"]])
def test_flip_580_under_outer_a_timeout_handler_without_results_keeps_the_row(
    settings: Any, instead: list[str]
) -> None:
    timeouts: list[str] = []

    async def never_for_b(value: str) -> list[str]:
        if value == "b":
            await trio.sleep_forever()
        return ["found"]

    async def replaced(value: str) -> list[str]:
        timeouts.append(value)
        return instead

    made = settings(never_for_b, on_timeout=replaced, timeout=0.01, on_error="column")
    enrichment = Enrichment(made, TEXT, "UTC", inputs=(0,), flatten="outer")
    batches = RowConversion(enrichment).run([pa.RecordBatch.from_pydict({"n": ["a", "b"]})])
    rows = [(row["n"], row["text"], row["error"]) for row in values_of(batches)]
    assert rows == [("a", "found", None), *(("b", text, None) for text in instead or [None])]
    assert timeouts == ["b"]


def test_flink_39532_two_arguments_from_one_column_are_two_objects(settings: Any) -> None:
    async def moved(values: list[int], copies: list[int]) -> int:
        values.clear()
        return len(copies)

    column = pa.array([[1, 2], [3]])
    assert values_of(ColumnConversion(settings(moved), T.LongType(), "UTC").run([(column, column)])) == [2, 1]


def test_flink_39532_memory_that_spark_would_use_again_does_not_reach_a_running_call(settings: Any, gate: Any) -> None:
    """The first batch is overwritten with the second, while its calls run."""
    memory = np.arange(3)
    column = pa.Array.from_buffers(pa.int64(), 3, [None, pa.py_buffer(memory)])
    first_batch_is_read = gate()

    async def late(value: int) -> int:
        if value < 3:
            await first_batch_is_read.wait()
        return value

    def batches() -> Any:
        yield column
        memory[:] = (7, 8, 9)
        first_batch_is_read.open()
        yield column

    assert values_of(ColumnConversion(settings(late), T.LongType(), "UTC").run(batches())) == [0, 1, 2, 7, 8, 9]
