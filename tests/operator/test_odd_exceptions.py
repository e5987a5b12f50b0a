"""Exceptions of user code with special methods of their own: they come out as themselves, wherever they are raised."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from trio_asyncio_io import DeadLetter, FixedDelay, ordered_wait
from trio_asyncio_io.gates import CircuitBreaker, RateLimit
from trio_asyncio_io.policies import cached, gated, hedged, single_flight


class ProblemsError(Exception):
    """Counts as false, because it is an empty list of problems."""

    def __len__(self) -> int:
        return 0


@dataclass(frozen=True)
class FrozenError(Exception):
    """Its attributes cannot be set."""

    code: int = 1


class MuteError(RuntimeError):
    """Has no message."""

    def __str__(self) -> str:
        raise AttributeError("no message")


ODD = [ProblemsError(), FrozenError(), MuteError()]
WRAPPERS = {
    "plain": lambda function: function,
    "cached": cached,
    "single_flight": single_flight,
    "gated": lambda function: gated(function, RateLimit(1e6)),
    "hedged": lambda function: hedged(function, after=0.05, budget=1),
}
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "retry": {"retry": FixedDelay(1, 0.1)},
    "breaker": {"gate": CircuitBreaker(calls=1, window=9.0)},
    "group": {"group": 2},
}


def name_of(error: object) -> str:
    return type(error).__name__ if isinstance(error, Exception) else str(error)


async def run(source: Any, function: Any) -> None:
    async with ordered_wait(source, function, timeout=5.0) as results:
        async for _ in results:
            pass


def raising(error: Exception) -> Any:
    async def call(value: Any) -> Any:
        await trio.sleep(0.1)
        raise error

    return call


@pytest.mark.parametrize("error", ODD, ids=name_of)
@pytest.mark.parametrize("wrapper", WRAPPERS)
async def test_an_odd_exception_comes_out(error: Exception, wrapper: str, autojump_clock: MockClock) -> None:
    function: Any = WRAPPERS[wrapper](raising(error))
    with pytest.raises(type(error)):
        await run([1, 2], function)


@pytest.mark.parametrize("error", ODD, ids=name_of)
@pytest.mark.parametrize("wrapper", WRAPPERS)
async def test_a_handler_gets_an_odd_exception(error: Exception, wrapper: str, autojump_clock: MockClock) -> None:
    async def handle(value: int, raised: Exception) -> type[Exception]:
        return type(raised)

    function: Any = WRAPPERS[wrapper](raising(error))
    async with ordered_wait([1, 2], function, timeout=5.0, on_error=handle) as results:
        assert [each async for each in results] == [type(error)] * 2
    assert results.statistics().running == 0


@pytest.mark.parametrize("error", ODD, ids=name_of)
@pytest.mark.parametrize("options", OPTIONS)
async def test_an_odd_exception_is_that_of_its_dead_letter(
    error: Exception, options: str, autojump_clock: MockClock
) -> None:
    function = raising(error)
    async with ordered_wait([1, 2], function, timeout=5.0, on_error="dead_letter", **OPTIONS[options]) as results:
        assert [each async for each in results] == []
        assert [type(each.error) async for each in results.dead_letters] == [type(error)] * 2


@pytest.mark.parametrize("error", ODD, ids=name_of)
async def test_an_odd_exception_of_the_source_comes_out(error: Exception, autojump_clock: MockClock) -> None:
    async def source() -> AsyncIterator[int]:
        yield 1
        raise error

    async def same(value: int) -> int:
        return value

    with pytest.raises(type(error)):
        await run(source(), same)


@pytest.mark.parametrize("error", ODD, ids=name_of)
async def test_an_odd_exception_of_the_block_comes_out(error: Exception, autojump_clock: MockClock) -> None:
    with pytest.raises(type(error)):
        async with ordered_wait([1], raising(OSError()), timeout=5.0):
            raise error


async def test_a_handler_that_is_false_is_called(autojump_clock: MockClock) -> None:
    class LastKnown(dict[int, str]):
        async def __call__(self, value: int) -> str:
            return self.get(value, "unknown")

    async def hang(value: int) -> str:
        await trio.sleep_forever()
        raise AssertionError

    async with ordered_wait([1], hang, timeout=1.0, on_timeout=LastKnown()) as results:
        assert [each async for each in results] == ["unknown"]


async def test_a_dead_letter_that_the_function_returns_is_a_result_after_a_restart(autojump_clock: MockClock) -> None:
    """A second run over dead letters, for example, returns the ones that it cannot repair."""
    letter = DeadLetter("bad", ValueError("bad"), 1, 0.5)

    async def repair(value: str) -> Any:
        await trio.sleep(0.1)
        if value == "worse":
            raise OSError
        return letter if value == "bad" else value

    options: dict[str, Any] = {"timeout": 5.0, "on_error": "dead_letter"}
    async with ordered_wait(["good", "bad", "worse", "last"], repair, **options) as results:
        assert await results.receive() == "good"
        snapshot = results.snapshot()
    async with ordered_wait([], repair, restore=snapshot, **options) as results:
        assert [each async for each in results] == [letter, "last"]
        assert [each.element async for each in results.dead_letters] == ["worse"]
