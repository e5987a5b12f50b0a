"""Shared resources: opened by the first user of a name, closed after the last one."""

from __future__ import annotations

import gc
import logging
import math
import pickle
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from trio_asyncio_io import AsyncFunction, lingering, ordered_wait, shared
from trio_asyncio_io.policies import cached, single_flight


class Service:
    """Makes clients, each of which takes a while to open and to close, and records both."""

    def __init__(self, seconds: float = 0.0, failures: int = 0) -> None:
        self.lines: list[tuple[str, float]] = []
        self.seconds = seconds
        self.failures = failures

    def note(self, line: str) -> None:
        self.lines.append((line, trio.current_time()))

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        self.note("opening")
        await trio.sleep(self.seconds)
        if self.failures:
            self.failures -= 1
            raise OSError("no service")
        client = Client()
        self.note("open")
        try:
            yield client
        finally:
            client.is_open = False
            await trio.sleep(self.seconds)
            self.note("closed")

    @property
    def steps(self) -> list[str]:
        return [line for line, _ in self.lines]


class Client:
    is_open = True

    async def get(self, seconds: float) -> float:
        await trio.sleep(seconds)
        assert self.is_open
        return seconds


ONCE = ["opening", "open", "closed"]


def getter(api: shared[Client]) -> Callable[[float], Any]:
    async def get(seconds: float) -> float:
        async with api as client:
            return await client.get(seconds)

    return get


async def operate(function: Any, *values: float, **options: Any) -> None:
    async with ordered_wait(values, function, **{"capacity": 1, "timeout": math.inf, **options}) as results:
        assert [result async for result in results] == list(values)


async def test_the_first_block_opens_it_and_the_last_one_closes_it(autojump_clock: MockClock) -> None:
    service = Service(seconds=1.0)
    api = shared("api", service.client)

    async def use(seconds: float) -> None:
        async with api as client:
            await client.get(seconds)

    async with trio.open_nursery() as nursery:
        for seconds in (1.0, 5.0, 3.0):
            nursery.start_soon(use, seconds)
    assert service.lines == [("opening", 0.0), ("open", 1.0), ("closed", 1.0 + 5.0 + 1.0)]


async def test_an_operator_keeps_it_open_from_its_first_use_to_its_end(autojump_clock: MockClock) -> None:
    service = Service()
    await operate(getter(shared("api", service.client)), 1.0, 2.0, 3.0)
    assert service.lines == [("opening", 0.0), ("open", 0.0), ("closed", 6.0)]


async def test_operators_and_handlers_share_it(autojump_clock: MockClock) -> None:
    service = Service()
    api = shared("api", service.client)

    async def too_slow(value: float) -> float:
        await trio.sleep_forever()
        raise AssertionError

    async with trio.open_nursery() as nursery:
        nursery.start_soon(operate, getter(api), 1.0, 3.0)
        nursery.start_soon(partial(operate, too_slow, 2.5, timeout=3.0, on_timeout=getter(api)))
        nursery.start_soon(operate, getter(shared("api", service.client)), 2.0)
    assert service.lines == [("opening", 0.0), ("open", 0.0), ("closed", 5.5)]


async def test_the_operator_closes_it_after_the_function(autojump_clock: MockClock) -> None:
    service = Service()
    api = shared("api", service.client)

    class Lookup(AsyncFunction[float, float]):
        async def open(self) -> None:
            async with api:
                service.note("function opened")

        async def invoke(self, value: float) -> float:
            return value

        async def close(self) -> None:
            async with api:
                service.note("function closed")

    await operate(Lookup(), 1.0)
    assert service.steps == ["opening", "open", "function opened", "function closed", "closed"]


async def test_a_function_can_enter_it_in_open_and_leave_it_in_close() -> None:
    service = Service()
    api = shared("api", service.client)

    class Lookup(AsyncFunction[float, float]):
        async def open(self) -> None:
            self.stack = AsyncExitStack()
            self.client = await self.stack.enter_async_context(api)

        async def invoke(self, value: float) -> float:
            return await self.client.get(value)

        async def close(self) -> None:
            await self.stack.aclose()

    await operate(Lookup(), 0.0)
    assert service.steps == ONCE


async def test_an_operator_whose_function_does_not_open_leaves_it() -> None:
    service = Service()
    api = shared("api", service.client)

    class Broken(AsyncFunction[float, float]):
        async def open(self) -> None:
            async with api:
                raise OSError("no")

        async def invoke(self, value: float) -> float:
            return value

    with pytest.raises(OSError, match="no"):
        await operate(Broken(), 1.0)
    assert service.steps == ONCE


@pytest.mark.parametrize("wrap", [single_flight, cached, lambda function: cached(single_flight(function))])
async def test_the_operator_keeps_open_what_a_shared_call_uses(wrap: Any, autojump_clock: MockClock) -> None:
    service = Service()
    await operate(wrap(getter(shared("api", service.client))), 1.0, 2.0, 3.0)
    assert service.lines == [("opening", 0.0), ("open", 0.0), ("closed", 6.0)]


async def test_the_outermost_operator_keeps_it_open(autojump_clock: MockClock) -> None:
    service = Service()
    get = getter(shared("api", service.client))

    async def inner(value: float) -> float:
        await operate(get, value)
        return value

    await operate(inner, 1.0, 2.0)
    assert service.steps == ONCE


async def test_a_task_that_a_call_starts_is_in_the_operator(autojump_clock: MockClock) -> None:
    service = Service()
    get = getter(shared("api", service.client))

    async def in_a_task(value: float) -> float:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(get, value)
        return value

    await operate(in_a_task, 1.0, 2.0)
    assert service.steps == ONCE


async def test_a_user_that_comes_while_it_is_closed_opens_it_again(autojump_clock: MockClock) -> None:
    service = Service(seconds=1.0)
    api = shared("api", service.client)

    async def use_later() -> None:
        await trio.sleep(1.5)
        async with api as client:
            assert client.is_open

    async with trio.open_nursery() as nursery:
        nursery.start_soon(use_later)
        async with api:
            pass
    assert service.lines == [("opening", 0), ("open", 1), ("closed", 2), ("opening", 2), ("open", 3), ("closed", 4)]


async def test_a_failed_opening_is_reported_to_all_who_wait_and_tried_again_by_the_next(
    autojump_clock: MockClock,
) -> None:
    service = Service(seconds=1.0, failures=1)
    api = shared("api", service.client)
    errors: list[OSError] = []

    async def use() -> None:
        with pytest.raises(OSError, match=r"^no service$") as caught:
            async with api:
                raise AssertionError
        errors.append(caught.value)

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(use)
    assert len({id(error) for error in errors}) == 3  # copies, so that notes and tracebacks do not mix
    async with api as client:
        assert client.is_open
    assert service.steps == ["opening", *ONCE]


async def test_an_opening_that_takes_too_long_is_cancelled(autojump_clock: MockClock) -> None:
    service = Service(seconds=40.0)
    message = r"^the shared resource 'api' did not open within open_timeout=30 s\. Check that the server"
    with pytest.raises(TimeoutError, match=message):
        async with shared("api", service.client):
            raise AssertionError
    assert trio.current_time() == 30.0
    service.seconds = 20.0
    async with shared("api", service.client):
        assert trio.current_time() == 50.0


async def test_a_user_that_leaves_does_not_cancel_the_opening_for_others(autojump_clock: MockClock) -> None:
    service = Service(seconds=3.0)
    api = shared("api", service.client)

    async def leave_after_a_second() -> None:
        with trio.move_on_after(1.0):
            async with api:
                raise AssertionError
        assert trio.current_time() == 1.0

    async with trio.open_nursery() as nursery:
        nursery.start_soon(leave_after_a_second)
        await wait_all_tasks_blocked()
        async with api:
            assert trio.current_time() == 3.0
    assert service.steps == ONCE


async def test_the_last_user_that_leaves_cancels_the_opening(autojump_clock: MockClock) -> None:
    service = Service(seconds=3.0)
    api = shared("api", service.client)
    with trio.move_on_after(1.0):
        async with api:
            raise AssertionError
    async with api:
        assert service.lines == [("opening", 0.0), ("opening", 1.0), ("open", 4.0)]


async def test_an_element_that_times_out_does_not_cancel_the_opening(autojump_clock: MockClock) -> None:
    service = Service(seconds=3.0)
    get = getter(shared("api", service.client))
    async with ordered_wait([0.5] * 4, get, capacity=1, timeout=1.0, on_error="skip") as results:
        assert [result async for result in results] == [0.5]
    assert service.lines[:2] == [("opening", 0.0), ("open", 3.0)]


async def test_an_operator_that_is_cancelled_closes_it(autojump_clock: MockClock) -> None:
    service = Service(seconds=1.0)
    with trio.move_on_after(5.0):
        await operate(getter(shared("api", service.client)), math.inf)
    assert service.lines == [("opening", 0.0), ("open", 1.0), ("closed", 6.0)]


async def test_a_resource_may_contain_a_nursery(autojump_clock: MockClock) -> None:
    ticks = 0

    @asynccontextmanager
    async def ticking() -> AsyncIterator[str]:
        async def tick() -> None:
            nonlocal ticks
            while True:
                await trio.sleep(1.0)
                ticks += 1

        async with trio.open_nursery() as nursery:
            nursery.start_soon(tick)
            yield "ticking"
            nursery.cancel_scope.cancel()

    clock = shared("clock", ticking)

    async def use(delay: float, seconds: float) -> None:
        await trio.sleep(delay)
        async with clock as value:
            assert value == "ticking"
            await trio.sleep(seconds)

    async with trio.open_nursery() as nursery:  # the first user leaves before the last one
        nursery.start_soon(use, 0.0, 2.2)
        nursery.start_soon(use, 1.0, 3.2)
    assert ticks == 4
    await trio.sleep(10.0)
    assert ticks == 4


async def test_a_resource_whose_own_task_fails_is_logged_and_opened_again(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    opened = 0

    @asynccontextmanager
    async def fragile() -> AsyncIterator[int]:
        nonlocal opened
        opened += 1

        async def fail() -> None:
            await trio.sleep(1.0)
            raise OSError("connection lost")

        async with trio.open_nursery() as nursery:
            if opened == 1:
                nursery.start_soon(fail)
            yield opened

    api = shared("api", fragile)
    with caplog.at_level(logging.ERROR, "trio_asyncio_io"):
        async with api as first:
            await trio.sleep(2.0)
            async with api as second:
                assert (first, second) == (1, 2)
    assert "the shared resource 'api' failed" in caplog.text


async def test_what_closing_raises_leaves_the_last_block(autojump_clock: MockClock) -> None:
    @asynccontextmanager
    async def broken() -> AsyncIterator[int]:
        yield 1
        raise OSError("not flushed")

    api = shared("api", broken)
    with pytest.raises(OSError, match=r"^not flushed$"):
        async with api:
            pass

    async def use(value: float) -> float:
        async with api:
            return value

    with pytest.raises(OSError, match=r"^not flushed$"):
        await operate(use, 1.0)

    async def fail(value: float) -> float:
        async with api:
            raise RuntimeError("bug")

    with pytest.raises(RuntimeError, match=r"^bug") as caught:
        await operate(fail, 1.0)
    assert any("a shared resource raised too: OSError('not flushed')" in note for note in caught.value.__notes__)


async def test_what_several_resources_raise_in_closing_leaves_the_block_as_a_group(autojump_clock: MockClock) -> None:
    @asynccontextmanager
    async def broken() -> AsyncIterator[int]:
        yield 1
        raise OSError("not flushed")

    async def use(value: float) -> float:
        async with shared("one", broken), shared("two", broken):
            return value

    with pytest.raises(ExceptionGroup, match=r"^several shared resources failed to close$"):
        await operate(use, 1.0)


@pytest.mark.parametrize("exit_", [KeyboardInterrupt, SystemExit])
async def test_an_exit_in_close_of_the_function_still_closes_what_its_calls_use(exit_: type[BaseException]) -> None:
    service = Service()
    get = getter(shared("api", service.client))

    class Exiting(AsyncFunction[float, float]):
        async def invoke(self, value: float) -> float:
            return float(await get(value))

        async def close(self) -> None:
            raise exit_("close")

    with pytest.raises(exit_, match=r"^close$"):
        await operate(Exiting(), 0.0)
    assert service.steps == ONCE


async def test_an_exit_while_a_resource_closes_still_closes_the_others() -> None:
    service = Service()

    @asynccontextmanager
    async def exiting() -> AsyncIterator[int]:
        yield 1
        raise SystemExit(3)

    api = shared("api", service.client)

    async def use(value: float) -> float:
        async with api, shared("exiting", exiting):
            return value

    with pytest.raises(SystemExit, match=r"^3$"):
        await operate(use, 1.0)
    assert service.steps == ONCE


async def test_closing_is_limited_to_30_seconds(autojump_clock: MockClock) -> None:
    @asynccontextmanager
    async def slow() -> AsyncIterator[int]:
        yield 1
        await trio.sleep(100.0)

    with pytest.raises(trio.TooSlowError, match=r"^the shared resource 'slow' was not closed within 30 s$"):
        async with shared("slow", slow):
            pass
    assert trio.current_time() == 30.0


async def test_with_lingering_it_stays_open_between_users(autojump_clock: MockClock) -> None:
    service = Service()
    api = shared("api", service.client)
    with lingering(10.0):
        for _ in range(3):
            await operate(getter(api), 1.0)
            await trio.sleep(9.0)
    assert service.lines == [("opening", 0.0), ("open", 0.0)]
    await trio.sleep(2.0)
    assert service.lines[2:] == [("closed", 31.0)]


def test_a_resource_that_lingers_is_closed_at_the_end_of_the_trio_run() -> None:
    service = Service(seconds=1.0)

    async def main() -> None:
        with lingering(1000.0):
            async with shared("api", service.client):
                pass

    trio.run(main, clock=MockClock(autojump_threshold=0))
    assert service.lines == [("opening", 0.0), ("open", 1.0), ("closed", 2.0)]


async def test_another_definition_is_refused_while_the_name_is_in_use() -> None:
    one, other = Service(), Service()
    message = (
        r"^two different shared resources have the name 'api': shared\('api', one_client of test_shared\.py:\d+, "
        r"open_timeout=30\) is in use, and shared\('api', other_client of test_shared\.py:\d+, open_timeout=30\) was "
        r"given\. Define it once and import it, or give them different names$"
    )

    def one_client() -> Any:
        return one.client()

    def other_client() -> Any:
        return other.client()

    async with shared("api", one_client):
        with pytest.raises(ValueError, match=message):
            async with shared("api", other_client):
                raise AssertionError
        with pytest.raises(ValueError, match=r"open_timeout=30\) is in use, and .*open_timeout=31\)"):
            await operate(getter(shared("api", one_client, open_timeout=31.0)), 0.0)
    assert (one.steps, other.steps) == (ONCE, [])


async def test_definitions_that_differ_in_a_dict_are_refused_and_copies_are_not() -> None:
    def client(configuration: dict[str, str]) -> Any:
        return shared("api", partial(dict, configuration))

    async with client({"token": "a"}), pickle.loads(pickle.dumps(client({"token": "a"}))) as copy:
        assert copy == {"token": "a"}
        with pytest.raises(ValueError, match="two different shared resources have the name 'api'"):
            async with client({"token": "b"}):
                raise AssertionError
    async with client({"token": "b"}) as other:
        assert other == {"token": "b"}


async def test_another_definition_replaces_one_that_only_lingers(autojump_clock: MockClock) -> None:
    one, other = Service(), Service()
    with lingering(100.0):
        async with shared("api", partial(Service.client, one)):
            pass
    async with shared("api", other.client):
        assert (one.steps, other.steps) == (ONCE, ["opening", "open"])


def test_each_trio_run_has_its_own() -> None:
    service = Service()
    api = shared("api", service.client)
    for _ in range(2):
        trio.run(operate, getter(api), 0.0)
    assert service.steps == ONCE * 2


class Closable:
    def __init__(self) -> None:
        self.lines: list[str] = []


class WithAclose(Closable):
    async def aclose(self) -> None:
        self.lines.append("aclose")


class WithClose(Closable):
    def close(self) -> None:
        self.lines.append("close")


class WithOpenAndClose(Closable):
    async def open(self) -> None:
        self.lines.append("open")

    async def invoke(self, value: int) -> int:
        return value

    async def close(self) -> None:
        self.lines.append("close")


@pytest.mark.parametrize(
    ("kind", "lines"),
    [(WithAclose, ["aclose"]), (WithClose, ["close"]), (WithOpenAndClose, ["open", "close"]), (Closable, [])],
)
async def test_an_object_that_is_no_context_manager_is_closed_as_it_can_be(kind: Any, lines: list[str]) -> None:
    async with shared("object", kind) as made:
        assert type(made) is kind
        assert made.lines == [line for line in lines if line == "open"]
    assert made.lines == lines


async def test_a_synchronous_context_manager_and_an_awaitable_are_opened() -> None:
    lines: list[str] = []

    @contextmanager
    def synchronous() -> Iterator[str]:
        yield "value"
        lines.append("closed")

    async def connect() -> Any:
        await trio.lowlevel.checkpoint()
        return synchronous()

    async with shared("synchronous", synchronous) as value:
        assert (value, lines) == ("value", [])
    async with shared("awaitable", connect) as value:
        assert (value, lines) == ("value", ["closed"])
    assert lines == ["closed"] * 2


async def test_a_limiter_of_trio_is_handed_out_and_not_acquired(autojump_clock: MockClock) -> None:
    limiter = shared("at once", partial(trio.CapacityLimiter, 2))

    async def limited(value: float) -> float:
        async with limiter as at_once, at_once:
            await trio.sleep(1.0)
        return value

    await operate(limited, 1.0, 2.0, 3.0, 4.0, 5.0, capacity=10)
    assert trio.current_time() == 3.0


async def test_a_context_manager_without_a_value_is_refused() -> None:
    @asynccontextmanager
    async def empty() -> AsyncIterator[None]:
        yield

    with pytest.raises(TypeError, match=r"^the context manager of the shared resource 'empty' returns None"):
        async with shared("empty", empty):
            raise AssertionError


async def test_a_name_that_is_not_used_any_longer_is_forgotten() -> None:
    made: list[weakref.ref[Client]] = []

    def make() -> Client:
        client = Client()
        made.append(weakref.ref(client))
        return client

    async with shared("api", make):
        pass
    gc.collect()
    assert made[0]() is None


def test_it_pickles_as_its_arguments() -> None:
    copy = pickle.loads(pickle.dumps(shared("api", Client, open_timeout=3.0)))
    assert (copy.name, copy.make, copy.open_timeout) == ("api", Client, 3.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("", Client), "name must not be empty, got ''"),
        ((7, Client), "name must be a string, got 7"),
        (("api", 7), "make must be callable, got 7"),
        (("api", Client, 0), "open_timeout must be seconds above 0, got 0"),
    ],
)
def test_an_argument_out_of_range_is_named(arguments: tuple[Any, ...], message: str) -> None:
    name, make, *rest = arguments
    with pytest.raises((TypeError, ValueError), match=f"^{message}$"):
        shared(name, make, **({"open_timeout": rest[0]} if rest else {}))


@pytest.mark.parametrize("seconds", [-1.0, math.inf])
def test_a_linger_time_is_finite_and_not_negative(seconds: float) -> None:
    with pytest.raises(ValueError, match=r"^seconds must be finite seconds and not negative"), lingering(seconds):
        raise AssertionError
