"""Elements that need no call, because the function's `known` returns their outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from unittest.mock import AsyncMock, NonCallableMock

import pytest
import trio
from trio.testing import MockClock

from trio_asyncio_io import AsyncFunction, AsyncWaitOperator, StreamRecord, Watermark, keyed_wait, ordered_wait
from trio_asyncio_io.gates import RateLimit
from trio_asyncio_io.policies import cached


class Lookup(AsyncFunction[Any, Any]):
    """Knows the outputs of None: none. Knows that of numbers. Text takes a second."""

    def __init__(self) -> None:
        self.called: list[tuple[str, float]] = []

    def known(self, value: Any) -> Sequence[Any] | None:
        if value is None:
            return ()
        return (-value,) if isinstance(value, int) else None

    async def invoke(self, value: Any) -> Any:
        self.called.append((value, trio.current_time()))
        await trio.sleep(1.0)
        return value.upper()


async def results_of(results: Any) -> list[Any]:
    async with results as channel:
        return [result async for result in channel]


async def test_a_known_element_makes_no_call_and_keeps_its_place(async_wait: Any, autojump_clock: MockClock) -> None:
    lookup = Lookup()
    out = await results_of(async_wait(["a", 1, None, Watermark(0), 2, "b", 3], lookup, timeout=5.0))
    assert lookup.called == [("a", 0.0), ("b", 0.0)]
    wall = out.index(Watermark(0))
    assert (sorted(map(str, out[:wall])), sorted(map(str, out[wall + 1 :]))) == (["-1", "A"], ["-2", "-3", "B"])


async def test_the_outputs_have_the_timestamp_of_the_element(autojump_clock: MockClock) -> None:
    elements = [StreamRecord(1, 10), StreamRecord("a", 11)]
    outputs = await results_of(ordered_wait(elements, Lookup(), timeout=5.0))
    assert outputs == [StreamRecord(-1, 10), StreamRecord("A", 11)]


async def test_a_known_element_takes_no_slot_and_passes_no_gate(autojump_clock: MockClock) -> None:
    lookup = Lookup()
    elements = ["a", 1, 2, 3, "b"]
    async with ordered_wait(elements, lookup, capacity=1, timeout=5.0, gate=RateLimit(0.5)) as results:
        assert [result async for result in results] == ["A", -1, -2, -3, "B"]
    assert lookup.called == [("a", 0.0), ("b", 2.0)]
    assert results.statistics().completed == 2


async def test_a_known_element_of_a_key_waits_for_the_older_ones(autojump_clock: MockClock) -> None:
    async with keyed_wait(["a", 1, "b", 2], Lookup(), key=lambda value: 0, timeout=5.0) as results:
        received = [(result, trio.current_time()) async for result in results]
    assert received == [("A", 1.0), (-1, 1.0), ("B", 2.0), (-2, 2.0)]


async def test_elements_that_are_put_restored_or_held_are_known_as_well(autojump_clock: MockClock) -> None:
    lookup = Lookup()
    async with AsyncWaitOperator(lookup, source=["a", 1, 2, 3], timeout=5.0, capacity=1, buffer=2) as first:
        await trio.sleep(0.5)
    async with AsyncWaitOperator(lookup, restore=first.snapshot(), timeout=5.0) as second:
        await second.put(4)
        second.put_nowait(5)
        second.end_input()
        assert [result async for result in second.output] == ["A", -1, -2, -4, -5]
    assert lookup.called == [("a", 0.0), ("a", 0.5)]


async def test_an_exception_of_known_stops_the_operator_and_loses_nothing(raised_by: Any) -> None:
    class Broken(Lookup):
        def known(self, value: Any) -> Sequence[Any] | None:
            return (10 // value,)

    async def wait(entered: Any) -> None:
        await trio.sleep_forever()

    operator = AsyncWaitOperator(Broken(), source=[5, 0, 2], timeout=5.0)
    assert isinstance(await raised_by(operator, wait), ZeroDivisionError)
    assert [(each.element, each.results) for each in operator.snapshot().elements] == [(5, [2]), (0, None)]


async def test_a_policy_forwards_known() -> None:
    assert await results_of(ordered_wait([1, 2], cached(Lookup(), size=1, ttl=1.0), timeout=5.0)) == [-1, -2]


@pytest.mark.parametrize("spec", [["invoke"], ["invoke", "close"]], ids=" ".join)
async def test_a_mock_knows_nothing(spec: list[str]) -> None:
    mock = NonCallableMock()
    mock.invoke = AsyncMock(return_value=5)
    mock.open = mock.close = AsyncMock()
    assert await results_of(ordered_wait([1], mock, timeout=5.0)) == [5]
