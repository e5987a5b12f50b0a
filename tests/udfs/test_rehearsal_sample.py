"""The sample of a job: its answers are converted as those of the job."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import types as T  # noqa: N812 - the usual name

from udfs._plan.row_plan import RowPlan
from udfs._rehearsal.sample import JobRows, SampledRows
from udfs._sent.settings import Enrichment
from udfs._spark_thread.misfits import ResultTypeError

ROWS = 8
NUMBERS = T.StructType([T.StructField("n", T.LongType())])
ANSWER = T.StructType([T.StructField("answer", T.StringType())])
FIVE = r"returned int 5 for row \(\d+\), but column 'answer' is declared string: return a str"

pytestmark = pytest.mark.filterwarnings("ignore:the sample has reached a load")


@pytest.fixture(params=["without a memo", "with a memo"])
def record(
    request: pytest.FixtureRequest, settings: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Callable[..., SampledRows]]:
    """Takes a sample of eight rows, without Spark."""
    has_memo = request.param == "with a memo"
    drawn = pa.RecordBatch.from_pydict({"n": pa.array(range(ROWS)), "bucket": pa.array([0] * ROWS, pa.int32())})

    def recorded(function: Any, *, flatten: bool = False, **options: Any) -> SampledRows:
        enrichment = Enrichment(
            settings(function, mode="unordered", on_error="null"), ANSWER, "UTC", inputs=(0,), flatten=flatten
        )
        source: Any = SimpleNamespace(isStreaming=False)
        plan = RowPlan(source, NUMBERS, ANSWER, ("answer",), (), enrichment)
        monkeypatch.setattr(JobRows, "_plan", lambda _: plan)
        monkeypatch.setattr(JobRows, "_drawn", lambda *_: drawn)
        options |= {"memo": tmp_path} if has_memo else {}
        sample = JobRows(source, function, ANSWER, 30.0, options).record(ROWS, ROWS, 2)
        assert sample.remembered == (sample.answers - len(sample.misfits) if has_memo else 0)
        return sample

    return recorded


def test_answers_that_fit_the_schema_need_no_sentence(record: Any) -> None:
    async def ask(n: int) -> str:
        return str(n)

    recorded = record(ask)
    assert (recorded.answers, recorded.check_answers()) == (ROWS, [])


def test_a_forecast_says_how_many_answers_do_not_fit_the_schema(record: Any) -> None:
    async def ask(n: int) -> Any:
        return "even" if n % 2 == 0 else 5

    (sentence,) = record(ask).check_answers()
    assert sentence.startswith("4 of 8 answers of the sample do not fit the schema, so these rows would fail: ")
    assert re.search(FIVE, sentence)


def test_the_error_of_the_first_answer_is_raised_if_none_fits(record: Any) -> None:
    async def ask(n: int) -> Any:
        return 5

    with pytest.raises(ResultTypeError, match=FIVE) as caught:
        record(ask).check_answers()
    assert caught.value.__notes__ == ["rehearse has made 8 calls, and none of their 8 answers fits the schema"]


def test_failed_calls_are_no_answers(record: Any) -> None:
    async def ask(n: int) -> Any:
        if n % 2:
            raise ConnectionError
        return 5

    with pytest.raises(ResultTypeError) as caught:
        record(ask).check_answers()
    assert caught.value.__notes__ == ["rehearse has made 8 calls, and none of their 4 answers fits the schema"]


def test_with_flatten_an_answer_is_a_list_of_outputs(record: Any) -> None:
    async def ask(n: int) -> Any:
        return [["a", "b"], [], "no list", ["a", 5]][n % 4]

    (sentence,) = record(ask, flatten=True).check_answers()
    assert sentence.startswith(
        "4 of 8 answers of the sample do not fit the schema, so these rows would fail: ask returned str"
    )


def test_with_group_each_row_has_an_answer_and_an_exception_is_none(record: Any) -> None:
    async def ask(n: list[int]) -> Any:
        return ["a", 5, ValueError("no"), "b"]

    (sentence,) = record(ask, group=4).check_answers()
    assert sentence.startswith("2 of 6 answers of the sample do not fit the schema, so these rows would fail: ")


def test_the_answers_of_a_group_may_be_an_array(record: Any) -> None:
    async def ask(n: list[int]) -> Any:
        return np.array([str(each) for each in n])

    recorded = record(ask, group=4)
    assert (recorded.answers, recorded.misfits) == (ROWS, [])


@pytest.mark.parametrize("result", [5, ["a"]])
def test_a_call_for_a_group_fails_without_a_result_for_each_row(record: Any, result: Any) -> None:
    async def ask(n: list[int]) -> Any:
        return result

    recorded = record(ask, group=4)
    assert recorded.answers == 0
    assert {call.outcome for call in recorded.sample.calls} == {"failed"}
    assert "must return a list with one result for each value" in str(recorded.sample.calls[0].error)
