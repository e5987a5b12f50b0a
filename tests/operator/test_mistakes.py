"""Typical mistakes: each message says what is wrong and what to do."""

from __future__ import annotations

import asyncio
import math
import time
import types
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import trio

from tests.support import outputs, stable_id
from trio_asyncio_io import AsyncWaitOperator, FixedDelay, NotAsyncError, keyed_wait, ordered_wait
from trio_asyncio_io.adapters import ResultFuture, from_callback
from trio_asyncio_io.gates import Auto, PerKey, RateLimit
from trio_asyncio_io.policies import cached
from trio_asyncio_io.testing import Scripted, Step

ENTER_FIRST = "^enter the operator first: `async with ordered_wait"


async def sleeps(value: Any) -> None:
    await asyncio.sleep(0.01)


async def yields(value: Any) -> None:
    await asyncio.sleep(0)


async def async_for(wait: Any) -> None:
    async for _ in wait:
        pass


async def with_block(wait: Any) -> None:
    with wait:
        pass


async def as_list(wait: Any) -> None:
    list(wait)


async def awaited(wait: Any) -> None:
    await wait


@pytest.mark.parametrize("use", [async_for, with_block, as_list, awaited])
async def test_an_operator_without_async_with_is_refused(async_wait: Any, use: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match=ENTER_FIRST):
        await use(async_wait([1], Scripted(), timeout=5.0))


async def test_a_plain_loop_over_the_results_is_refused(async_wait: Any) -> None:
    async with async_wait([1], Scripted(), timeout=5.0) as results:
        with pytest.raises(TypeError, match=r"^receive the results with `async for"):
            list(results)


async def test_the_results_of_one_operator_can_still_be_the_source_of_another(async_wait: Any) -> None:
    async with async_wait([1, 2], Scripted(), timeout=5.0) as results:
        assert sorted(await outputs(async_wait(results, Scripted(), timeout=5.0))) == [1, 2]


def test_a_misspelt_option_has_a_suggestion(async_wait: Any) -> None:
    with pytest.raises(TypeError, match=r"_wait got an unexpected .* 'capcity': did you mean 'capacity'\?$"):
        async_wait([1], Scripted(), timeout=5.0, capcity=10)


def test_an_unknown_option_of_the_operator_lists_all() -> None:
    options: Any = {"attempts": 3}
    with pytest.raises(TypeError, match=r"^AsyncWaitOperator got .* 'attempts': use mode, timeout, .*, retry, "):
        AsyncWaitOperator(Scripted(), timeout=5.0, **options)


def test_a_mode_that_contradicts_the_operator_is_refused() -> None:
    options: Any = {"mode": "unordered"}
    with pytest.raises(TypeError, match=r"^ordered_wait got an unexpected keyword argument 'mode'"):
        ordered_wait([1], Scripted(), timeout=5.0, **options)


def test_a_coroutine_instead_of_a_function_is_refused(async_wait: Any) -> None:
    coroutine: Any = sleeps(1)
    with pytest.raises(TypeError, match=r"give the function itself, without calling it$"):
        async_wait([1], coroutine, timeout=5.0)
    coroutine.close()


class DataFrame:
    """Looks like Spark's."""


DataFrame.__module__ = "pyspark.sql.classic.dataframe"


class Extended(DataFrame):
    """A subclass, as some libraries have it."""


@pytest.mark.parametrize("source", [DataFrame(), Extended()], ids=stable_id)
@pytest.mark.parametrize("more", [(), ("name string",)])
def test_a_spark_dataframe_as_the_source_names_the_right_import(async_wait: Any, source: Any, more: Any) -> None:
    with pytest.raises(TypeError, match=r"^the source is a Spark DataFrame: import \w+_wait from udfs, not from trio"):
        async_wait(source, Scripted(), *more, timeout=5.0, inputs=["id"])


class OfPandas:
    """Iterates over the names of its columns, as that of pandas."""

    def __iter__(self) -> Any:
        return iter(["name"])


OfPandas.__name__ = "DataFrame"
OfPandas.__module__ = "pandas.core.frame"


def test_a_dataframe_that_iterates_over_its_columns_is_refused(async_wait: Any) -> None:
    with pytest.raises(TypeError, match=r"^the source is a DataFrame, .* columns: give its rows, such as .*itertuples"):
        async_wait(OfPandas(), Scripted(), timeout=5.0)


def test_the_name_of_a_field_as_the_key_is_refused_with_an_example() -> None:
    with pytest.raises(TypeError, match=r"^key must be a function of an element, such as attrgetter\('account'\), got"):
        keyed_wait([1], Scripted(), key="account", timeout=5.0)  # type: ignore[call-overload]


def test_options_by_position_are_refused(async_wait: Any) -> None:
    with pytest.raises(TypeError, match=r"got 2 more positional arguments: give the options by keyword$"):
        async_wait([1], Scripted(), 5.0, 100, timeout=5.0)


async def forgets_await(value: Any) -> Any:
    return waiting(value)


async def forgets_in_a_group(values: Any) -> Any:
    return [waiting(value) for value in values]


MISSING_AWAIT = r"^forgets\w+ returned a coroutine: write `return await waiting\(\.\.\.\)`"


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"on_error": "skip"},
        {"flatten": True},
        {"retry": FixedDelay(1, delay=0.0, retry_on=lambda error: True)},
        {"retry": FixedDelay(1, delay=0.0, retry_on_result=lambda result: True)},
        {"group": 2},
    ],
    ids=stable_id,
)
async def test_a_forgotten_await_ends_the_run_with_an_error_that_names_it(
    async_wait: Any, autojump_clock: Any, options: Any
) -> None:
    with pytest.raises(NotAsyncError, match=MISSING_AWAIT) as caught:
        await outputs(async_wait([1, 2], forgets_await, timeout=5.0, **options))
    assert any("attempt 1" in note for note in caught.value.__notes__)


async def test_a_forgotten_await_for_a_record_of_a_group_is_named(async_wait: Any, autojump_clock: Any) -> None:
    with pytest.raises(NotAsyncError, match=MISSING_AWAIT):
        await outputs(async_wait([1], forgets_in_a_group, timeout=5.0, group=2))


async def test_a_forgotten_await_of_a_flattened_output_is_named(async_wait: Any, autojump_clock: Any) -> None:
    async def forgets(value: int) -> list[Any]:
        return [value, waiting(value)]

    with pytest.raises(NotAsyncError, match=r"^with flatten=True an output is a coroutine: write `await waiting\("):
        await outputs(async_wait([1], forgets, timeout=5.0, flatten=True))


async def is_busy(_: Any) -> bool:
    return False


@pytest.mark.parametrize(
    "make",
    [
        lambda: FixedDelay(1, 1.0, retry_on=is_busy),  # type: ignore[arg-type]
        lambda: FixedDelay(1, 1.0, retry_on_result=is_busy),  # type: ignore[arg-type]
        lambda: FixedDelay(1, 1.0, retry_after=is_busy),
        lambda: RateLimit(1.0, weight=is_busy),  # type: ignore[arg-type]
        lambda: Auto(classify=is_busy),  # type: ignore[arg-type]
        lambda: PerKey(RateLimit(1.0), key=is_busy),
        lambda: keyed_wait([1], sleeps, timeout=5.0, key=is_busy),
        lambda: cached(sleeps, key=is_busy),
        lambda: cached(sleeps, ttl=1.0, negative_ttl=1.0, is_negative=is_busy),  # type: ignore[arg-type]
    ],
)
def test_an_async_function_whose_result_nothing_awaits_is_refused(make: Callable[[], Any]) -> None:
    """Its coroutine would be true, so that each result is retried, and hashable, so that each call has its own key."""
    with pytest.raises(TypeError, match=r"^\w+ must not be async, got <function is_busy at 0x\w+>: write it with def"):
        make()


@pytest.mark.parametrize("wrap", [cached, partial])
async def test_a_forgotten_await_is_that_of_the_function_inside_its_wrappers(async_wait: Any, wrap: Any) -> None:
    with pytest.raises(NotAsyncError, match=MISSING_AWAIT):
        await outputs(async_wait([1], wrap(forgets_await), timeout=5.0))


async def test_a_forgotten_await_in_a_handler_names_the_handler(async_wait: Any, autojump_clock: Any) -> None:
    async def handler(value: Any) -> Any:
        return waiting(value)

    never = Scripted(default=Step(math.inf))
    with pytest.raises(NotAsyncError, match=r"^on_timeout returned a coroutine: write `return await waiting"):
        await outputs(async_wait([1], never, timeout=1.0, on_timeout=handler))


async def test_a_coroutine_that_has_begun_is_left_alone() -> None:
    @types.coroutine
    def suspends() -> Any:
        yield "suspended"

    async def begun() -> Any:
        try:
            await suspends()
        finally:
            ended.append(True)

    ended: list[bool] = []
    coroutine: Any = begun()
    coroutine.send(None)
    assert "returned a coroutine" in str(NotAsyncError.for_coroutine("call", coroutine))
    assert not ended
    coroutine.close()


async def catches_all(value: Any) -> Any:
    try:
        await trio.sleep(value)
    except:  # noqa: E722 - the mistake
        return "caught"
    return value


async def test_results_after_the_deadline_are_counted(async_wait: Any, autojump_clock: Any) -> None:
    """A bare `except:` catches the cancellation, so a timeout becomes a result."""
    async with async_wait([0.5, 2.0, 3.0], catches_all, timeout=1.0) as results:
        assert sorted(map(str, [result async for result in results])) == ["0.5", "caught", "caught"]
    statistics = results.statistics()
    assert (statistics.completed, statistics.late, statistics.timed_out) == (3, 2, 0)


async def test_a_result_after_the_deadline_of_an_attempt_is_not_late(async_wait: Any, autojump_clock: Any) -> None:
    retry = FixedDelay(1, delay=0.0, attempt_timeout=1.0)
    async with async_wait([2.0], catches_all, timeout=9.0, retry=retry) as results:
        assert [result async for result in results] == ["caught"]
    assert results.statistics().late == 0


async def test_an_invocation_that_times_out_is_not_late(async_wait: Any, autojump_clock: Any) -> None:
    async with async_wait([9.0], waiting_for, timeout=1.0, on_error="skip") as results:
        assert [result async for result in results] == []
    statistics = results.statistics()
    assert (statistics.timed_out, statistics.late) == (1, 0)


async def waiting_for(value: Any) -> Any:
    await trio.sleep(value)


SEMAPHORE = asyncio.Semaphore(1)


async def limited(value: Any) -> Any:
    async with SEMAPHORE:
        await trio.sleep(1.0)


async def queued(value: Any) -> Any:
    return await asyncio.Queue[Any]().get()


@pytest.mark.parametrize("function", [limited, queued])
async def test_a_wait_for_an_object_of_asyncio_fails_with_the_name_of_its_adapter(
    async_wait: Any, autojump_clock: Any, function: Any
) -> None:
    with pytest.raises(AttributeError, match="create_future") as caught:
        await outputs(async_wait([1, 2, 3], function, timeout=5.0))
    assert any("adapters.from_asyncio(function)" in note for note in caught.value.__notes__)


async def numbers() -> Any:
    yield 1


def plain_numbers() -> Any:
    yield 1


@pytest.mark.parametrize("source", [numbers, plain_numbers])
def test_a_generator_function_as_the_source_is_to_be_called(async_wait: Any, source: Any) -> None:
    name = source.__name__
    with pytest.raises(TypeError, match=rf"got .*: call the generator function, as in {name}\(\)$"):
        async_wait(source, Scripted(), timeout=5.0)


def test_a_function_in_the_place_of_the_source_is_named(async_wait: Any) -> None:
    with pytest.raises(TypeError, match=r"got <function waiting .*: the source is the first argument, the func"):
        async_wait(waiting, [1], timeout=5.0)


async def takes_two(first: Any, second: Any) -> None: ...


async def takes_none() -> None: ...


class WithoutSelf:
    async def invoke(value: Any) -> None: ...  # type: ignore[misc]  # noqa: N805 - the mistake


@pytest.mark.parametrize("options", [{}, {"group": 2}])
@pytest.mark.parametrize("function", [takes_two, takes_none, WithoutSelf()], ids=stable_id)
async def test_a_function_of_other_parameters_is_told_what_it_gets(
    async_wait: Any, function: Any, options: Any
) -> None:
    with pytest.raises(TypeError, match="positional argument") as caught:
        await outputs(async_wait([(1, 2)], function, timeout=5.0, **options))
    assert "the function gets one argument" in "".join(caught.value.__notes__)


async def adds(value: Any) -> Any:
    return takes_two(value)  # type: ignore[call-arg]


def reports_a_text(value: Any, result_future: ResultFuture[None]) -> None:
    result_future.complete_exceptionally("busy")  # type: ignore[arg-type]


@pytest.mark.parametrize("function", [adds, from_callback(reports_a_text)], ids=stable_id)
async def test_a_type_error_inside_the_function_has_no_such_note(async_wait: Any, function: Any) -> None:
    with pytest.raises(TypeError, match=r"positional argument|an instance of Exception") as caught:
        await outputs(async_wait([1], function, timeout=5.0))
    assert "the function gets one argument" not in "".join(caught.value.__notes__)


class PlainOpen:
    def open(self) -> None: ...

    async def invoke(self, value: Any) -> None: ...


class PlainClose:
    def close(self) -> None: ...

    async def invoke(self, value: Any) -> None: ...


@pytest.mark.parametrize(("function", "name"), [(PlainOpen(), "open"), (PlainClose(), "close")], ids=stable_id)
async def test_a_plain_open_or_close_is_to_be_declared_async(async_wait: Any, function: Any, name: str) -> None:
    kind = type(function).__name__
    with pytest.raises(NotAsyncError, match=rf"^{name}\(\) of {kind} must be async: .*`async def {name}\(self\)`"):
        await outputs(async_wait([1], function, timeout=5.0))


@pytest.mark.parametrize("function", [sleeps, yields])
@pytest.mark.parametrize(
    "options",
    [{}, {"retry": FixedDelay(1, delay=0.0)}, {"on_error": "dead_letter"}, {"on_error": "skip"}, {"group": 2}],
    ids=stable_id,
)
async def test_an_asyncio_function_ends_the_run_with_the_name_of_its_adapter(
    async_wait: Any, function: Any, options: Any
) -> None:
    with pytest.raises((RuntimeError, TypeError), match=r"no running event loop|asyncio") as caught:
        await outputs(async_wait([1], function, timeout=5.0, **options))
    assert any("adapters.from_asyncio(function)" in note for note in caught.value.__notes__)


async def blocking(value: Any) -> Any:
    time.sleep(0.02)  # noqa: ASYNC251 - the mistake
    return value


async def waiting(value: Any) -> Any:
    await trio.sleep(0.02)
    return value


async def test_a_function_that_blocks_the_loop_is_logged(async_wait: Any, caplog: pytest.LogCaptureFixture) -> None:
    await outputs(async_wait(range(20), blocking, timeout=5.0))
    (record,) = caplog.records
    assert record.name == "trio_asyncio_io"
    assert "blocking at 0x" in record.message
    assert "adapters.in_thread" in record.message
    assert "BlockedLoop()" in record.message


@pytest.mark.parametrize("capacity", [1, 10])
async def test_a_function_that_waits_is_not_logged(
    async_wait: Any, autojump_clock: Any, caplog: pytest.LogCaptureFixture, capacity: int
) -> None:
    await outputs(async_wait(range(20), waiting, timeout=5.0, capacity=capacity))
    assert not caplog.records


async def test_a_function_is_not_logged_if_the_source_is_slow(
    async_wait: Any, autojump_clock: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async def source() -> Any:
        for number in range(20):
            await trio.sleep(1.0)
            yield number

    await outputs(async_wait(source(), waiting, timeout=5.0))
    assert not caplog.records
