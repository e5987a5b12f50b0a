"""The advice of `explain()`, followed: planted bottlenecks on virtual time are run again with what it says."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.operator.test_explain import SITUATIONS, Saturated, Situation, explained, flood, one_second
from trio_asyncio_io import Verdict, ordered_wait, unordered_wait
from trio_asyncio_io.gates import CircuitBreaker
from trio_asyncio_io.policies import cached

pytestmark = pytest.mark.usefixtures("no_cpu_time")


async def timed(situation: Situation, **changed: Any) -> tuple[float, Verdict]:
    """The seconds that it takes, and the verdict."""
    began = trio.current_time()
    verdict = await explained(situation, **changed)
    return trio.current_time() - began, verdict


async def warm_up_then_flood(count: int) -> AsyncIterator[int]:
    """A cache answers the same value at a low load, and new values come at once."""
    for _ in range(30):
        await trio.sleep(0.5)
        yield 0
    for value in range(1, count):
        yield value


@pytest.mark.parametrize("situation", SITUATIONS.values(), ids=SITUATIONS.keys())
async def test_the_advice_helps_or_says_that_nothing_here_will(situation: Situation, autojump_clock: MockClock) -> None:
    """An advised value makes the run 1.4 times as fast, or is enough for the same time."""
    seconds, verdict = await timed(situation)
    most = 1.03 * seconds if "is enough" in verdict.advice else seconds / 1.4
    for name, value in re.findall(r"(capacity|buffer)=([\d,]*\d)", verdict.advice):
        assert (await timed(situation, **{name: int(value.replace(",", ""))}))[0] <= most, verdict.advice
    if "unordered_wait" in verdict.advice:
        assert (await timed(replace(situation, wait=unordered_wait)))[0] <= most
    if "More capacity changes nothing" in verdict.advice or "is enough" in verdict.advice:
        more, _ = await timed(situation, capacity=2 * situation.options.get("capacity", 10))
        assert more >= 0.9 * seconds  # on a busy machine, the operator pauses, and calls start in another order


async def test_more_capacity_in_front_of_a_saturated_service_is_taken_back(autojump_clock: MockClock) -> None:
    """Without a low load, nothing shows that the service is saturated, so the advice says how to find out."""
    situation = Situation("capacity", lambda: flood(300), Saturated)
    seconds, verdict = await timed(situation)
    assert verdict.limit == "capacity"
    back = "If the throughput did not rise, the calls wait in the service: go back to 10."
    assert verdict.advice.endswith(back)
    assert (await timed(situation, capacity=20))[0] == pytest.approx(seconds, rel=0.05)


async def test_answers_from_a_cache_are_no_low_load(autojump_clock: MockClock) -> None:
    """They take no time, so the service would look slower at a high load, and the advice would be capacity=1."""
    slow = cached(one_second)
    verdict = await explained(Situation("capacity", lambda: warm_up_then_flood(500), lambda: slow))
    assert verdict.limit == "capacity", str(verdict)
    assert "The load was always about the same" in str(verdict)


async def test_refused_records_are_counted_apart_from_calls(autojump_clock: MockClock) -> None:
    async def is_down(value: int) -> int:
        await trio.sleep(1.0)
        raise TimeoutError

    gate = CircuitBreaker("fail", calls=5, open_for=1000.0, max_open=1000.0)
    async with ordered_wait(range(60), is_down, capacity=5, timeout=60.0, on_error="skip", gate=gate) as results:
        async for _ in results:
            pass
    numbers, verdict = results.statistics(), results.explain()
    made = numbers.failed - numbers.refused
    assert numbers.refused > 0
    assert numbers.latency.count == made
    assert verdict.sentences[0].startswith(f"{made} calls ({made} failed or timed out)")
    refused = f"Gates refused {numbers.refused} other records, for which no call was made: "
    assert f"{refused}the circuit is open: the service does not answer." in verdict.sentences
    assert "with a mean latency of 1 s" in str(verdict)
