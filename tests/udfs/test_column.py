"""The decorator of the column UDF, without a JVM. Columns in a query are tested in tests/real/spark."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
import trio
from pyspark import cloudpickle
from pyspark.sql.types import StringType

from tests.support import stable_id
from udfs._column import async_pandas_udf


async def look_up(value: int) -> int:
    return 10 * value


def test_a_udf_is_created_without_a_session_by_decorator_and_by_call() -> None:
    by_function = async_pandas_udf(look_up, "long", timeout=5.0, capacity=7)
    by_decorator = async_pandas_udf("long", timeout=5.0, capacity=7)(look_up)
    by_keyword = async_pandas_udf(returnType="long", timeout=5.0, capacity=7)(look_up)
    assert by_function == by_decorator == by_keyword
    assert by_function.__name__ == "look_up"
    assert by_function.settings.options.capacity == 7


@async_pandas_udf("long", timeout=5.0)
async def decorated(value: int) -> int:
    return 10 * value


def test_the_decorated_function_can_be_awaited_without_spark() -> None:
    assert trio.run(decorated.function, 7) == 70


@pytest.mark.parametrize("dumps", [pickle.dumps, cloudpickle.dumps])
def test_a_udf_and_its_function_survive_a_pickle(dumps: Any) -> None:
    copied = pickle.loads(dumps(decorated))
    assert copied == decorated
    assert trio.run(copied.function, 7) == 70


def test_a_udf_is_not_deterministic_by_default() -> None:
    """Spark may call a deterministic UDF twice per row: once in a filter, and once for the column."""
    assert not async_pandas_udf(look_up, "long", timeout=5.0).deterministic
    made = async_pandas_udf(look_up, "long", timeout=5.0, deterministic=True)
    assert made.deterministic
    assert not made.asNondeterministic().deterministic


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), r'give the return type, such as async_pandas_udf\("string", timeout=5\.0\)'),
        ((look_up,), r'give the return type, such as async_pandas_udf\(function, "string", timeout=5\.0\)'),
        ((len, "long"), "the function must be async, got len"),
    ],
    ids=stable_id,
)
def test_a_missing_return_type_or_a_blocking_function_is_a_type_error(arguments: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        async_pandas_udf(*arguments, timeout=5.0)


def test_timeout_is_required() -> None:
    with pytest.raises(TypeError, match="timeout"):
        async_pandas_udf(look_up, "long")  # type: ignore[call-arg]


def test_a_udf_needs_at_least_one_column() -> None:
    made = async_pandas_udf(look_up, "long", timeout=5.0)
    with pytest.raises(TypeError, match="look_up needs at least one column"):
        made()


@pytest.mark.parametrize("made", [decorated, pickle.loads(cloudpickle.dumps(decorated))], ids=["made", "unpickled"])
def test_a_udf_needs_a_column_for_each_parameter(made: Any) -> None:
    with pytest.raises(TypeError, match=r"^decorated takes \(value\), got 2 columns \(a, b\): give one "):
        made("a", "b")


@pytest.mark.parametrize(
    ("option", "name", "on_error"),
    [
        ("metadata", "result", "null"),
        ("metadata", "Result", "raise"),
        ("metadata", "error", "column"),
        ("error", "result", "column"),
        ("error", "Result", "column"),
    ],
)
def test_a_field_with_the_name_of_another_one_is_refused(option: str, name: str, on_error: Any) -> None:
    more: Any = {option: name}
    with pytest.raises(ValueError, match=f"the column has a field {name!r} already: give {option} another name"):
        async_pandas_udf(look_up, "long", timeout=5.0, on_error=on_error, **more)


def test_the_field_of_errors_has_the_given_name() -> None:
    made = async_pandas_udf(look_up, StringType(), timeout=5.0, on_error="column", error="why", metadata="error")
    assert [field.name for field in made.returnType] == ["result", "why", "error"]  # type: ignore[attr-defined]


@pytest.mark.parametrize("on_error", ["raise", "null"])
def test_a_name_for_errors_without_a_column_of_errors_is_refused(on_error: Any) -> None:
    message = (
        f"^error='why' names the column of on_error=\"column\", got on_error='{on_error}': give on_error=\"column\","
    )
    with pytest.raises(ValueError, match=message):
        async_pandas_udf(look_up, "long", timeout=5.0, on_error=on_error, error="why")


def test_both_capacities_are_refused() -> None:
    message = "^capacity=9 and cluster_capacity=20 exclude each other: give capacity for each task, or cluster_capacity"
    with pytest.raises(ValueError, match=message):
        async_pandas_udf(look_up, "long", timeout=5.0, capacity=9, cluster_capacity=20)


def test_with_cluster_capacity_the_buffer_may_be_below_the_default_capacity() -> None:
    assert async_pandas_udf(look_up, "long", timeout=5.0, cluster_capacity=20, buffer=50).settings.options.buffer == 50
