"""The column UDF's work in a task: arrays in, arrays out, row by row. Its face on the driver is in tests/real/spark."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest
import trio
from pyspark import cloudpickle
from pyspark.sql import types as T  # noqa: N812 - what everybody calls it

from tests.naming import told
from udfs._column import AsyncPandasUDF, _Work, async_pandas_udf
from udfs._task.converters import ResultTypeError
from udfs._task.zone import Zone

POINT = T.StructType([T.StructField("x", T.DoubleType()), T.StructField("y", T.LongType())])


async def fail_on_two(value: int) -> int:
    if value == 2:
        raise ValueError("two is too many")
    return 10 * value


def work(settings: Any, function: Any, kind: T.DataType = T.LongType(), **more: Any) -> _Work:  # noqa: B008
    return _Work(settings(function, **more), kind, Zone("UTC"))


def out_of(made: _Work, *batches: Any) -> list[Any]:
    arrays = list(made.run(iter(batches)))
    return [value for array in arrays for value in array.to_pylist()]


def test_an_array_of_one_column_gives_an_array_of_results(settings: Any) -> None:
    made = work(settings, fail_on_two)
    assert out_of(made, pa.array([3, None, 4]).drop_null(), pa.array([5])) == [30, 40, 50]


def test_several_columns_come_as_tuples_of_arrays(settings: Any) -> None:
    async def join(number: int | None, text: str | None) -> str:
        return f"{number}{text}"

    made = work(settings, join, T.StringType())
    batches = [(pa.array([1, None]), pa.array(["a", "b"])), (pa.array([3]), pa.array([None], pa.string()))]
    assert out_of(made, *batches) == ["1a", "Noneb", "3None"]


def test_as_many_values_come_out_as_went_in(settings: Any) -> None:
    batches = [pa.array([1] * size, pa.int64()) for size in (0, 3, 0, 1, 700, 0)]
    assert len(out_of(work(settings, fail_on_two), *batches)) == 704
    assert out_of(work(settings, fail_on_two)) == []


def test_a_struct_comes_out_as_one(settings: Any) -> None:
    async def point(value: int) -> dict[str, Any] | None:
        return {"x": value / 2, "y": None} if value else None

    assert out_of(work(settings, point, POINT), pa.array([0, 1])) == [None, {"x": 0.5, "y": None}]


def test_on_error_null_gives_null_for_a_failure_and_for_a_misfit(settings: Any) -> None:
    async def trouble(value: int) -> Any:
        return "three" if value == 3 else await fail_on_two(value)

    assert out_of(work(settings, trouble, on_error="null"), pa.array([1, 2, 3, 4])) == [10, None, None, 40]


def test_on_error_column_gives_a_struct_of_result_and_error(settings: Any) -> None:
    made = work(settings, fail_on_two, on_error="column")
    well, ill = out_of(made, pa.array([1, 2]))
    assert well == {"result": 10, "error": None}
    assert ill["result"] is None
    assert (ill["error"]["type"], ill["error"]["message"]) == ("ValueError", "two is too many")
    assert ill["error"]["attempts"] == 1
    assert ill["error"]["seconds"] >= 0


def test_a_misfit_fails_the_task_and_cancels_its_calls(settings: Any, tasks_of_the_loop: Any) -> None:
    async def trouble(value: int) -> Any:
        return "two" if value == 2 else value

    with pytest.raises(ResultTypeError, match=r"trouble returned str 'two', which is no bigint .* row \(2\)"):
        out_of(work(settings, trouble), pa.array([1, 2, 3]))
    assert tasks_of_the_loop() == []


def test_closing_the_generator_ends_the_task(settings: Any, tasks_of_the_loop: Any) -> None:
    arrays = work(settings, fail_on_two, buffer=2, capacity=2).run(iter([pa.array([1] * 100)] * 100))
    next(arrays)
    arrays.close()  # type: ignore[attr-defined]
    assert tasks_of_the_loop() == []


def test_a_udf_is_made_without_a_session_as_decorator_and_as_function() -> None:
    by_function = async_pandas_udf(fail_on_two, "long", timeout=5.0, capacity=7)
    by_decorator = async_pandas_udf("long", timeout=5.0, capacity=7)(fail_on_two)
    by_keyword = async_pandas_udf(returnType="long", timeout=5.0, capacity=7)(fail_on_two)
    assert by_function == by_decorator == by_keyword
    assert by_function.__name__ == "fail_on_two"
    assert by_function.settings.capacity == 7


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


def test_a_udf_is_not_deterministic_unless_it_says_so() -> None:
    """Spark may call a deterministic one twice for a row: once in the filter, once for the column."""
    assert not async_pandas_udf(fail_on_two, "long", timeout=5.0).deterministic
    made = async_pandas_udf(fail_on_two, "long", timeout=5.0, deterministic=True)
    assert made.deterministic
    assert not made.asNondeterministic().deterministic


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), r'give the return type, such as async_pandas_udf\("string", timeout=5\.0\)'),
        ((fail_on_two,), r'give the return type, such as async_pandas_udf\(function, "string", timeout=5\.0\)'),
        ((len, "long"), "the function must be async, got len"),
    ],
    ids=told,
)
def test_a_udf_that_lacks_something_says_what(arguments: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        async_pandas_udf(*arguments, timeout=5.0)


def test_the_decorator_refuses_what_it_cannot_decorate() -> None:
    decorate = async_pandas_udf("long", timeout=5.0)
    with pytest.raises(TypeError, match="the function must be async, got len"):
        decorate(len)


def test_the_timeout_is_required() -> None:
    with pytest.raises(TypeError, match="timeout"):
        async_pandas_udf(fail_on_two, "long")  # type: ignore[call-arg]


def test_a_column_is_never_unordered() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'mode'"):
        async_pandas_udf(fail_on_two, "long", timeout=5.0, mode="unordered")


def test_a_udf_is_called_with_at_least_one_column() -> None:
    made: AsyncPandasUDF = async_pandas_udf(fail_on_two, "long", timeout=5.0)
    with pytest.raises(TypeError, match="fail_on_two needs at least one column to be called with"):
        made()


def test_a_buffer_is_compared_with_the_share_of_the_cluster_and_not_with_the_default_capacity() -> None:
    assert async_pandas_udf(fail_on_two, "long", timeout=5.0, cluster_capacity=20, buffer=50).settings.buffer == 50
