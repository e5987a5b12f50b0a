"""The admissions: what gates hear of the calls that they have admitted, and `settle`."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.plain_gates import Listener
from tests.support import outputs
from trio_asyncio_io import AsyncWaitOperator, FixedDelay, ordered_wait
from trio_asyncio_io.gates import Gate, Outcome, RateLimit, settle
from trio_asyncio_io.testing import Scripted, Step


class Broken(Gate):
    """Raises when a call is cancelled."""

    def delay(self, now: float, weight: float) -> float:
        return 0.0

    def ended(self, now: float, seconds: float, outcome: Outcome, weight: float) -> None:
        if outcome.kind == "cancelled":
            raise ZeroDivisionError("broken")


@pytest.mark.parametrize(("retry", "calls"), [(None, 3), (FixedDelay(2, 0.0), 3)], ids=["one attempt", "retries"])
async def test_settle_corrects_the_weight_during_the_call(retry: Any, calls: int, autojump_clock: MockClock) -> None:
    async def ask(value: str) -> float:
        settle(99)
        await trio.sleep(0.5)
        settle(2)
        return trio.current_time()

    gate = RateLimit(1.0, weight=lambda value: 10)
    ends = await outputs(ordered_wait("abc", ask, timeout=1.0, gate=gate, retry=retry))
    assert ends == [0.5, 2.5, 4.5]


async def test_settle_has_no_effect_without_a_weight(autojump_clock: MockClock) -> None:
    async def ask(value: str) -> float:
        settle(99)
        return trio.current_time()

    settle(1)
    assert await outputs(ordered_wait("abc", ask, timeout=1.0, gate=RateLimit(1.0))) == [0.0, 1.0, 2.0]


class StatusError(Exception):
    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


@pytest.mark.parametrize("retry", [None, FixedDelay(0, 0.0)], ids=["without retries", "with a strategy"])
async def test_a_gate_hears_of_the_start_and_the_end_of_each_call(retry: Any, autojump_clock: MockClock) -> None:
    steps = {
        "ok": Step(1.0),
        "429": Step(1.0, error=StatusError(429)),
        "503": Step(1.0, error=StatusError(503)),
        "404": Step(1.0, error=StatusError(404)),
        "slow": Step(inf),
    }
    gate = Listener()
    async with ordered_wait(
        steps, Scripted(steps), capacity=1, timeout=2.0, gate=gate, on_error="skip", retry=retry
    ) as results:
        async for _ in results:
            pass
    assert gate.heard == [
        ("started", 0.0, 1.0),
        ("ok", 1.0, 1.0, 1.0),
        ("started", 1.0, 1.0),
        ("throttled", 2.0, 1.0, 1.0),
        ("started", 2.0, 1.0),
        ("overload", 3.0, 1.0, 1.0),
        ("started", 3.0, 1.0),
        ("error", 4.0, 1.0, 1.0),
        ("started", 4.0, 1.0),
        ("overload", 6.0, 2.0, 1.0),
    ]
    assert results.statistics().throttled == 1


async def test_totals_count_throttled_calls(autojump_clock: MockClock) -> None:
    script = Scripted({"a": Step(1.0, error=StatusError(429))}, default=Step(1.0))
    async with AsyncWaitOperator(script, source="ab", timeout=2.0, gate=Listener(), on_error="skip") as operator:
        assert [result async for result in operator.output] == ["b"]
    assert (operator.totals() + operator.totals()).throttled == 2


async def test_a_gate_hears_that_a_call_was_cancelled(autojump_clock: MockClock) -> None:
    gate = Listener()
    async with ordered_wait("ab", Scripted(default=Step(9.0)), timeout=inf, gate=gate):
        await trio.sleep(1.0)
    assert [heard[0] for heard in gate.heard] == ["started", "started", "cancelled", "cancelled"]


async def test_a_predicate_replaces_the_classifier(autojump_clock: MockClock) -> None:
    gate = Listener()
    gate.classify = lambda error: "throttled" if "slow down" in str(error) else "error"
    script = Scripted({"a": Step(error=ValueError("slow down")), "b": Step(error=TimeoutError)})
    await outputs(ordered_wait("ab", script, capacity=1, timeout=5.0, gate=gate, on_error="skip"))
    assert [heard[0] for heard in gate.heard] == ["started", "throttled", "started", "error"]


async def test_a_gate_that_is_broken_at_the_end_does_not_hide_the_failure_and_every_call_ends(
    autojump_clock: MockClock,
) -> None:
    """The first of three calls that have their slots fails before the others begin."""

    async def fail(value: int) -> int:
        raise LookupError

    listener = Listener()
    operator = AsyncWaitOperator(fail, source=range(3), timeout=60.0, capacity=3, gate=[Broken(), listener])
    with pytest.raises(LookupError) as raised:
        async with operator:
            await trio.sleep_forever()
    assert "a gate raised too: ZeroDivisionError('broken')" in raised.value.__notes__
    kinds = [line[0] for line in listener.heard]
    assert kinds.count("started") == len(kinds) / 2 == 3
    with pytest.raises(trio.ClosedResourceError):
        await operator.output.receive()
