"""Corners in which Flink's asynchronous operators were corrected: at least one test for each of these issues."""

from __future__ import annotations

import math
from operator import attrgetter
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.support import outputs
from trio_asyncio_io import AsyncFunction, FixedDelay, StreamRecord, Watermark, keyed_wait, ordered_wait
from trio_asyncio_io.policies import cached
from trio_asyncio_io.testing import Recorder, Scripted, Step

NEVER = Step(math.inf)
MISS = Step(error=OSError("busy"))

# FLINK-40456: a result that races with the timeout of its own retry was lost, and its record with it


@pytest.mark.parametrize("latency", [0.0, 1.0, 2.0, 3.0])
@pytest.mark.parametrize("backoff", [0.0, 1.0, 2.0, 3.0])
async def test_flink_40456_a_retry_around_the_deadline_has_exactly_one_output(
    async_wait: Any, autojump_clock: MockClock, backoff: float, latency: float
) -> None:
    """Before the deadline at 3 s, its result; after it, that of the timeout handler; at this instant, one of them."""
    function = Scripted({"a": [MISS, Step(latency, result="result")]})
    on_timeout = Recorder(Scripted(default=Step(result="timeout")))
    source = [StreamRecord("a", 1), Watermark(1), StreamRecord("b", 2)]
    async with async_wait(
        source, function, timeout=3.0, retry=FixedDelay(1, backoff), on_timeout=on_timeout
    ) as results:
        first, *others = [result async for result in results]
    ends = backoff + latency
    assert first.value in ({"result", "timeout"} if ends == 3.0 else {"result"} if ends < 3.0 else {"timeout"})
    assert others == [Watermark(1), StreamRecord("b", 2)]
    assert len(on_timeout.calls) == (first.value == "timeout")
    statistics = results.statistics()
    assert (statistics.completed, statistics.timed_out) == ((1, 1) if on_timeout.calls else (2, 0))
    assert (statistics.emitted, statistics.buffered) == (2, 0)


@pytest.mark.parametrize("finishes", [3.0, 4.0])
async def test_flink_40456_a_retry_that_finishes_although_its_deadline_has_expired_gives_its_result(
    async_wait: Any, autojump_clock: MockClock, finishes: float
) -> None:
    """A call in a thread cannot be cancelled."""
    script = Scripted({"a": [MISS, Step(finishes - 1.0)]})
    on_timeout = Recorder(Scripted())

    async def shielded(value: str) -> str:
        with trio.CancelScope(shield=True):
            return await script(value)

    operator = async_wait("a", shielded, timeout=3.0, retry=FixedDelay(1, 1.0), on_timeout=on_timeout)
    assert await outputs(operator) == ["a"]
    assert on_timeout.calls == []


async def test_flink_40456_a_failure_at_the_deadline_is_one_timeout_and_no_retry(
    async_wait: Any, autojump_clock: MockClock
) -> None:
    function = Recorder(Scripted(default=Step(1.0, error=OSError("busy"))))
    on_timeout = Recorder(Scripted(default=Step(result="timeout")))
    operator = async_wait("a", function, timeout=3.0, retry=FixedDelay(9, 0.0), on_timeout=on_timeout)
    assert await outputs(operator) == ["timeout"]
    assert (len(function.calls), len(on_timeout.calls)) == (3, 1)


# FLIP-580: the user's timeout handler of a table function, which has 0 to n results


class Lookup(AsyncFunction[str, list[str]]):
    """Has no answer for "b" in time. Its handler gives what it is constructed with."""

    def __init__(self, instead: list[str]) -> None:
        self.instead = instead
        self.timeouts: list[str] = []

    async def invoke(self, value: str) -> list[str]:
        await trio.sleep(9.0 if value == "b" else 1.0)
        return [value, value]

    async def timeout(self, value: str) -> list[str]:
        self.timeouts.append(value)
        return self.instead


@pytest.mark.parametrize("instead", [[], ["x"], ["x", "y", "z"]])
@pytest.mark.parametrize("retry", [None, FixedDelay(9, 0.5, attempt_timeout=1.5)], ids=["once", "retried"])
async def test_flip_580_the_timeout_handler_is_called_once_and_gives_any_number_of_outputs(
    async_wait: Any, autojump_clock: MockClock, instead: list[str], retry: FixedDelay | None
) -> None:
    function = Lookup(instead)
    async with async_wait("abc", function, timeout=4.0, flatten=True, retry=retry) as results:
        out = [result async for result in results]
    assert sorted(out) == sorted(["a", "a", "c", "c", *instead])
    assert function.timeouts == ["b"]
    assert (results.statistics().timed_out, results.statistics().failed) == (1, 0)


async def test_flip_580_an_error_of_the_timeout_handler_is_not_retried(
    async_wait: Any, autojump_clock: MockClock
) -> None:
    function = Recorder(Scripted(default=NEVER))
    on_timeout = Recorder(Scripted(default=Step(error=OSError("no fallback"))))
    async with async_wait(
        "a", function, timeout=3.0, retry=FixedDelay(9, 0.0), on_timeout=on_timeout, on_error="skip"
    ) as results:
        assert [result async for result in results] == []
    assert (len(function.calls), len(on_timeout.calls)) == (1, 1)
    assert (results.statistics().timed_out, results.statistics().skipped) == (1, 1)


# FLINK-39532: the input of a running call was overwritten. Here, an owner who changes it changes only what the call
# itself reads: order, limits and caches keep the key that they computed before


class Request:
    """Its owner sends it again and again, with another key."""

    def __init__(self, key: str) -> None:
        self.key = key


async def test_flink_39532_the_key_of_a_record_is_computed_once_and_stays_when_the_record_changes(
    autojump_clock: MockClock,
) -> None:
    first, second, third = Request("a"), Request("a"), Request("b")
    recorder = Recorder(Scripted({first: Step(2.0), second: Step(1.0), third: Step(1.0)}))
    keyed: list[Request] = []

    def key(request: Request) -> str:
        keyed.append(request)
        return request.key

    async with keyed_wait([first, second, third], recorder, key=key, timeout=9.0) as results:
        await trio.sleep(1.0)
        first.key = "b"
        assert [result async for result in results] == [third, first, second]
    assert keyed == [first, second, third]
    assert [(call.value, call.started) for call in recorder.calls] == [(first, 0.0), (third, 0.0), (second, 2.0)]


async def test_flink_39532_an_answer_is_cached_under_the_key_with_which_its_call_began(
    autojump_clock: MockClock,
) -> None:
    async def answer(request: Request) -> str:
        key = request.key
        await trio.sleep(1.0)
        return f"answer for {key}"

    first = Request("a")
    function = cached(answer, key=attrgetter("key"))
    async with ordered_wait([first, Request("a"), Request("b")], function, capacity=1, timeout=9.0) as results:
        await trio.sleep(0.5)
        first.key = "b"
        assert [result async for result in results] == ["answer for a", "answer for a", "answer for b"]
    assert (function.hits, function.misses) == (1, 2)


async def test_flink_39532_the_function_receives_the_object_of_the_source_not_a_copy(
    async_wait: Any, autojump_clock: MockClock
) -> None:
    """What goes in comes out. A source that reuses one container must therefore yield copies of it."""
    values = [Request("a"), Request("b")]
    recorder = Recorder(Scripted())
    out = await outputs(async_wait(values, recorder, timeout=9.0))
    for found in (out, [call.value for call in recorder.calls]):
        assert {id(value) for value in found} == {id(value) for value in values}
