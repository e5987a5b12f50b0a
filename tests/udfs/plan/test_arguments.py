"""Arguments of the public functions. The queries themselves are tested in tests/real/spark."""

from __future__ import annotations

import threading
from typing import Any

import pandas as pd
import pytest

from tests.support import stable_id
from udfs import ClusterBudget, async_pandas_udf, keyed_wait, ordered_wait, unordered_wait
from udfs._plan.arguments import column_names


async def look_up(value: int) -> int:
    return value


WAITS = pytest.mark.parametrize("wait", [ordered_wait, unordered_wait, keyed_wait], ids=stable_id)


@WAITS
@pytest.mark.parametrize(
    ("df", "kind"),
    [([1, 2], "list"), (pd.DataFrame({"a": [1]}), r"pandas\..*DataFrame"), (look_up, "function")],
    ids=["a list", "a DataFrame of pandas", "a function"],
)
def test_something_else_than_a_dataframe_is_refused(wait: Any, df: Any, kind: str) -> None:
    message = rf"df must be a Spark DataFrame, got a {kind}: make one with spark\.createDataFrame\(\.\.\.\)"
    with pytest.raises(TypeError, match=message):
        wait(df, look_up, "a int", timeout=1.0, **({"key": "a"} if wait is keyed_wait else {}))


class Column:
    """Has any attribute, as Spark's columns have for the fields of a struct."""

    def __getattr__(self, name: str) -> Column:
        return self


@WAITS
def test_a_column_in_the_place_of_the_dataframe_is_refused(wait: Any) -> None:
    with pytest.raises(
        TypeError, match=r"^df must be a Spark DataFrame, got a tests\.Column: give the DataFrame that has it$"
    ):
        wait(Column(), look_up, "a int", timeout=1.0, **({"key": "a"} if wait is keyed_wait else {}))


@WAITS
def test_a_typo_in_an_option_is_refused_with_the_similar_name(wait: Any) -> None:
    message = f"{wait.__name__} got an unexpected keyword argument 'capcity': did you mean 'capacity'\\?$"
    with pytest.raises(TypeError, match=message):
        wait([1], look_up, "a int", timeout=1.0, capcity=9, **({"key": "a"} if wait is keyed_wait else {}))


@WAITS
def test_the_part_of_an_option_behind_its_prefix_is_enough_for_a_suggestion(wait: Any) -> None:
    key = {"key": "a"} if wait is keyed_wait else {}
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'rate': did you mean 'cluster_rate'\?$"):
        wait([1], look_up, "a int", timeout=1.0, rate=9, **key)


def test_the_column_udf_refuses_a_typo_and_lists_its_options() -> None:
    with pytest.raises(TypeError, match=r"async_pandas_udf got .* 'metadat': did you mean 'metadata'\?$"):
        async_pandas_udf(look_up, "int", timeout=1.0, metadat="how")  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="unexpected keyword argument 'xyzzy': use timeout, deterministic, capacity, "):
        async_pandas_udf(look_up, "int", timeout=1.0, xyzzy=1)  # type: ignore[call-overload]


@pytest.mark.parametrize("name", ["mode", "delay", "function", "_"])
def test_internal_settings_are_not_keyword_arguments(name: str) -> None:
    """An unordered column UDF would silently corrupt data."""
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
        async_pandas_udf("int", timeout=1.0, **{name: "unordered"})(look_up)  # type: ignore[arg-type]


def test_a_budget_of_another_type_is_refused() -> None:
    with pytest.raises(TypeError, match=r"cluster_budget must be a ClusterBudget such as .*\), got 50"):
        async_pandas_udf(look_up, "int", timeout=1.0, cluster_budget=50)  # type: ignore[call-overload]


def test_a_budget_whose_weight_cannot_be_pickled_is_refused() -> None:
    lock = threading.Lock()
    budget = ClusterBudget(5.0, weight=lambda _: float(lock.locked()))
    with pytest.raises(TypeError, match=r"^cluster_budget captures something .*cannot be sent to the workers"):
        async_pandas_udf(look_up, "int", timeout=1.0, cluster_budget=budget)


@pytest.mark.parametrize("inputs", ["origin", [], [1], ["origin", None], 5], ids=str)
def test_inputs_must_be_a_list_of_names(inputs: Any) -> None:
    with pytest.raises(TypeError, match="inputs must be a list of one or more names of columns, got"):
        column_names("inputs", inputs)


def test_inputs_may_be_any_sequence_of_names() -> None:
    assert column_names("inputs", ("a", "b")) == ["a", "b"]


@pytest.mark.parametrize("arguments", [{"event_time": "at"}, {"max_out_of_orderness": "10 seconds"}], ids=str)
def test_ordered_wait_refuses_event_time_and_names_unordered_wait(arguments: dict[str, Any]) -> None:
    df: Any = None  # it is not read
    with pytest.raises(TypeError, match=r"^ordered_wait has no event_time: .* or use unordered_wait$"):
        ordered_wait(df, str, "answer string", timeout=5.0, **arguments)
