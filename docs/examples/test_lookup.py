import math

import pytest
import trio

from trio_asyncio_io import ordered_wait, unordered_wait
from trio_asyncio_io.testing import Recorder, Scripted, Step


def make_lookup(weather, plane):
    async def lookup(flight):
        found = {}

        async def look_up_plane():
            with trio.move_on_after(0.5):
                found["plane"] = await plane(flight)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(look_up_plane)
            found["weather"] = await weather(flight)
        return found

    return lookup


@pytest.mark.trio
async def test_a_slow_plane_is_left_out(autojump_clock):
    weather = Scripted(default=Step(0.1, result="rain"))
    plane = Recorder(Scripted({"UA1": Step(math.inf)}, default=Step(0.2, result="737")))
    lookup = make_lookup(weather, plane)
    async with ordered_wait(["UA1", "UA2"], lookup, timeout=5.0) as results:
        found = [result async for result in results]
    assert found == [{"weather": "rain"}, {"plane": "737", "weather": "rain"}]
    assert plane.cancelled == 1
    assert {call.value: call.ended for call in plane.calls} == {"UA1": 0.5, "UA2": 0.2}


@pytest.mark.trio
async def test_a_slow_service_meets_the_timeout(autojump_clock):
    slow = Recorder(Scripted({"b": Step(60.0), "c": Step(0.3)}, default=Step(0.2)))
    async with unordered_wait("abc", slow, timeout=1.0, on_error="skip") as results:
        assert [result async for result in results] == ["a", "c"]
    assert trio.current_time() == 1.0
    assert slow.running == 0
