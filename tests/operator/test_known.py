"""Elements that need no call, because an embedding function knows their outputs."""

from __future__ import annotations

from typing import Any

import trio
from trio.testing import MockClock

from trio_asyncio_io import ordered_wait, unordered_wait
from trio_asyncio_io.gates import RateLimit
from trio_asyncio_io.integration import KnowsOutputs
from trio_asyncio_io.testing import Recorder, Scripted, Step


class KnowsEven(Recorder[int, Any], KnowsOutputs):
    def __init__(self, default: Step | None = None) -> None:
        super().__init__(Scripted(default=default))
        self.values_seen: list[int] = []

    def known(self, value: int) -> tuple[str] | None:
        self.values_seen.append(value)
        return None if value % 2 else (f"known {value}",)


async def test_a_known_element_keeps_its_place_and_passes_no_gate(autojump_clock: MockClock) -> None:
    function = KnowsEven()
    async with ordered_wait(range(4), function, timeout=9.0, gate=RateLimit(1.0)) as results:
        assert [result async for result in results] == ["known 0", 1, "known 2", 3]
    assert [(call.value, call.started) for call in function.calls] == [(1, 0.0), (3, 1.0)]


async def test_a_known_element_needs_no_slot(autojump_clock: MockClock) -> None:
    async with unordered_wait([1, 2], KnowsEven(Step(9.0)), capacity=1, timeout=20.0) as results:
        assert [(result, trio.current_time()) async for result in results] == [("known 2", 0.0), (1, 9.0)]


async def test_an_attribute_of_a_client_with_that_name_is_no_such_method() -> None:
    class Client(Recorder[int, int]):
        known = ("Oslo", "Bergen")

        def _known(self, value: int) -> tuple[str]:
            return ("a city",)

    async with ordered_wait(range(2), Client(Scripted()), timeout=9.0) as results:
        assert [result async for result in results] == [0, 1]


async def test_the_method_is_called_once_for_each_element(autojump_clock: MockClock) -> None:
    function = KnowsEven(Step(1.0))
    async with ordered_wait(range(30), function, capacity=1, buffer=3, timeout=20.0) as results:
        assert len([result async for result in results]) == 30
    assert function.values_seen == list(range(30))
