"""The advice of `explain()`, followed: planted bottlenecks on virtual time are run again with what it says."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.operator.test_explain import (
    Flaky,
    Saturated,
    Situation,
    blocks,
    fails,
    flood,
    hot_key,
    never_ends,
    one_second,
    replaced,
    straggler,
    trickle,
    trickle_then_flood,
)
from trio_asyncio_io import FixedDelay, Verdict, keyed_wait, ordered_wait, unordered_wait
from trio_asyncio_io.gates import Auto, CircuitBreaker, PerKey, RateLimit
from trio_asyncio_io.policies import cached

pytestmark = pytest.mark.usefixtures("no_cpu_time")


@dataclass(kw_only=True)
class Plant(Situation):
    """A situation that is run again with what the verdict advises.

    Attributes:
        gain: How much faster the run with the advised value is, at least. 1.0: it is as fast.
    """

    gates: Callable[[], Any] = tuple
    gain: float = 1.0

    async def run(self, **changed: Any) -> tuple[float, Verdict]:
        """The seconds that it takes, and the verdict."""
        began = trio.current_time()
        options = {"capacity": 10, "buffer": 50, "timeout": 1000.0, "gate": self.gates(), **self.options, **changed}
        options["buffer"] = max(options["buffer"], options["capacity"])
        wait = options.pop("wait", self.wait)
        async with wait(self.source(), self.function(), **options) as results:
            async for _ in results:
                await trio.sleep(self.consumer_seconds)
        return trio.current_time() - began, results.explain()


class WithAKnee:
    """A service that answers ten calls at once in a second, and gets slower for all with more."""

    def __init__(self) -> None:
        self.running = 0

    async def __call__(self, value: int) -> int:
        self.running += 1
        await trio.sleep(0.0)
        await trio.sleep(max(1.0, self.running / 10))
        self.running -= 1
        return value


async def warm_up_then_flood(count: int) -> AsyncIterator[int]:
    """A cache answers the same value at a low load, and new values come at once."""
    for _ in range(30):
        await trio.sleep(0.5)
        yield 0
    for value in range(1, count):
        yield value


PLANTS = {
    "slots": Plant("capacity", lambda: flood(500), gain=1.8),
    "slots, and a latency that is known not to rise": Plant(
        "capacity", lambda: trickle_then_flood(1000, 1.0), gain=1.5
    ),
    "a saturated service, of which a low load is known": Plant(
        "service", lambda: trickle_then_flood(500, 1.0), Saturated, options={"capacity": 50}
    ),
    "a service with a knee": Plant(
        "service", lambda: trickle_then_flood(2000, 1.0), WithAKnee, options={"capacity": 80, "buffer": 200}
    ),
    "a slow source": Plant("source", lambda: trickle(200, 0.5)),
    "fewer elements than slots": Plant("source", lambda: flood(25), options={"capacity": 40}),
    "a slow consumer": Plant("consumer", lambda: flood(200), consumer_seconds=0.5),
    "a straggler, in order": Plant("buffer", lambda: flood(2000), lambda: straggler, gain=2.0),
    "one hot key": Plant("key", lambda: flood(300), wait=keyed_wait, options={"key": hot_key}),
    "two keys, and a buffer for all records": Plant(
        "key", lambda: flood(100), wait=keyed_wait, options={"key": lambda value: value % 2, "buffer": 500}
    ),
    "a rate limit": Plant("gate", lambda: flood(200), gates=lambda: [RateLimit(2.0)]),
    "a rate limit of each key": Plant(
        "gate", lambda: flood(200), gates=lambda: [PerKey(RateLimit(1.0), key=lambda value: value % 2)]
    ),
    "a capacity that the service does not raise": Plant("gate", lambda: flood(200), gates=lambda: [Auto(most=2)]),
    "calls that time out": Plant(
        "timeouts", lambda: flood(200), lambda: never_ends, options={"timeout": 5.0, "on_error": replaced}
    ),
    "attempts that are repeated": Plant(
        "retries", lambda: flood(200), Flaky, options={"retry": FixedDelay(3, 0.25, retry_on=ConnectionError)}
    ),
    "a function that blocks the loop": Plant("blocking", lambda: flood(200), lambda: blocks),
    "calls that all fail": Plant("capacity", lambda: flood(200), lambda: fails, options={"on_error": replaced}),
}


def advised(verdict: Verdict) -> dict[str, int]:
    """The options of the advice, by name."""
    found = re.findall(r"(capacity|buffer)=([\d,]*\d)", verdict.advice)
    return {name: int(value.replace(",", "")) for name, value in found}


@pytest.mark.parametrize("plant", PLANTS.values(), ids=PLANTS.keys())
async def test_the_advice_helps_or_says_that_nothing_here_will(plant: Plant, autojump_clock: MockClock) -> None:
    seconds, verdict = await plant.run()
    assert verdict.limit == plant.limit, str(verdict)
    options = advised(verdict)
    for name, value in options.items():
        assert plant.gain * (await plant.run(**{name: value}))[0] <= 1.03 * seconds, verdict.advice
    if "unordered_wait" in verdict.advice:
        assert plant.gain * (await plant.run(wait=unordered_wait))[0] <= seconds
    if "More capacity changes nothing" in verdict.advice or "is enough" in verdict.advice:
        more, _ = await plant.run(capacity=2 * plant.options.get("capacity", 10))
        assert more >= 0.9 * seconds  # on a busy machine, the operator pauses, and calls start in another order
    assert bool(options) == (plant.gain > 1.0 or "is enough" in verdict.advice)


async def test_more_capacity_in_front_of_a_saturated_service_is_taken_back(autojump_clock: MockClock) -> None:
    """Without a low load, nothing shows that the service is saturated, so the advice says how to find out."""
    plant = Plant("capacity", lambda: flood(300), Saturated)
    seconds, verdict = await plant.run()
    assert verdict.limit == "capacity"
    back = "If the throughput did not rise, the calls wait in the service: go back to 10."
    assert verdict.advice.endswith(back)
    assert (await plant.run(capacity=20))[0] == pytest.approx(seconds, rel=0.05)


async def test_answers_from_a_cache_are_no_low_load(autojump_clock: MockClock) -> None:
    """They take no time, so the service would look slower at a high load, and the advice would be capacity=1."""
    slow = cached(one_second)
    plant = Plant("capacity", lambda: warm_up_then_flood(500), lambda: slow)
    _, verdict = await plant.run()
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
