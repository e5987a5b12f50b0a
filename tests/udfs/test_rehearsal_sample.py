"""The sample of a job: which of its answers are in the memo."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import types as T  # noqa: N812 - the usual name

from udfs._plan.row_plan import RowPlan
from udfs._rehearsal.sample import JobRows, RecordedRows
from udfs._sent.settings import Enrichment

ROWS = 8
NUMBERS = T.StructType([T.StructField("n", T.LongType())])
ANSWER = T.StructType([T.StructField("answer", T.StringType())])

pytestmark = pytest.mark.filterwarnings("ignore:the sample has reached a load")


@pytest.fixture
def record(settings: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[..., RecordedRows]]:
    """Takes a sample of eight rows with a memo, without Spark."""
    drawn = pa.RecordBatch.from_pydict({"n": pa.array(range(ROWS)), "bucket": pa.array([0] * ROWS, pa.int32())})

    def recorded(function: Any, *, flatten: bool = False, **options: Any) -> RecordedRows:
        enrichment = Enrichment(
            settings(function, mode="unordered", on_error="null"), ANSWER, "UTC", inputs=(0,), flatten=flatten
        )
        source: Any = SimpleNamespace(isStreaming=False)
        plan = RowPlan(source, NUMBERS, ANSWER, ("answer",), (), enrichment)
        monkeypatch.setattr(JobRows, "_plan", lambda _: plan)
        monkeypatch.setattr(JobRows, "_drawn", lambda *_: drawn)
        return JobRows(source, function, ANSWER, 30.0, {**options, "memo": tmp_path}).record(ROWS, ROWS, 2)

    return recorded


def test_answers_that_fit_the_schema_are_remembered(record: Any) -> None:
    async def ask(n: int) -> Any:
        return "even" if n % 2 == 0 else 5

    assert record(ask).remembered == ROWS // 2


def test_failed_calls_are_no_answers(record: Any) -> None:
    async def ask(n: int) -> str:
        if n % 2:
            raise ConnectionError
        return str(n)

    assert record(ask).remembered == ROWS // 2


def test_with_flatten_an_answer_is_a_list_of_outputs(record: Any) -> None:
    async def ask(n: int) -> Any:
        return [["a", "b"], [], "no list", ["a", 5]][n % 4]

    assert record(ask, flatten=True).remembered == ROWS // 2


def test_with_group_each_row_has_an_answer_and_an_exception_is_none(record: Any) -> None:
    async def ask(n: list[int]) -> Any:
        return ["a", 5, ValueError("no"), "b"]

    assert record(ask, group=4).remembered == ROWS // 2


def test_the_answers_of_a_group_may_be_an_array(record: Any) -> None:
    async def ask(n: list[int]) -> Any:
        return np.array([str(each) for each in n])

    assert record(ask, group=4).remembered == ROWS


@pytest.mark.parametrize("result", [5, ["a"]])
def test_a_call_for_a_group_fails_without_a_result_for_each_row(record: Any, result: Any) -> None:
    async def ask(n: list[int]) -> Any:
        return result

    recorded = record(ask, group=4)
    assert recorded.remembered == 0
    assert {call.outcome for call in recorded.sample.calls} == {"failed"}
    assert "must return a list with one result for each value" in str(recorded.sample.calls[0].error)
