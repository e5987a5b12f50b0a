"""The account of random runs, against the state of the operator at each instant."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import pytest
import trio
from hypothesis import example, given
from hypothesis import strategies as st

from tests.properties.runs import on_virtual_time
from trio_asyncio_io import AsyncWaitOperator, FixedDelay, Totals
from trio_asyncio_io.gates import Gate, PerKey, RateLimit

REASONS = ("gated", "retries", "keyed", "full", "source")


@dataclass(frozen=True)
class Load:
    """The inputs of one run. Times are in quarters of a second.

    Args:
        calls: Of each record: its key, its latency, and how its attempts end before the one with a result.
        gaps: Of the source; (): it is not async.
        pauses: Of the consumer.
        group: (the largest number of records in a call, group_wait), or None.
    """

    mode: str
    calls: tuple[tuple[int, int, tuple[str, ...]], ...]
    capacity: int
    more_buffer: int
    gaps: tuple[int, ...]
    pauses: tuple[int, ...]
    backoff: int
    handler: int
    gate: str
    group: tuple[int, int] | None

    def options(self) -> dict[str, Any]:
        gate: Gate | PerKey | None = None
        if self.gate != "none":
            gate = RateLimit(0.5) if self.gate == "for all" else PerKey(RateLimit(0.25), key=self.key)
        options: dict[str, Any] = {
            "mode": self.mode,
            "key": self.key if self.mode == "keyed" else None,
            "capacity": self.capacity,
            "buffer": max(self.capacity, self.group[0] if self.group else 0) + self.more_buffer,
            "timeout": math.inf,
            "gate": gate,
            "retry": FixedDelay(
                3, self.backoff / 4, retry_on=OSError, retry_on_result=lambda result: result == "again"
            ),
            "on_error": self.handle,
        }
        if self.group is not None:
            options |= {"group": self.group[0], "group_wait": self.group[1] / 4}
        return options

    def key(self, number: int) -> int:
        return self.calls[number][0]

    async def handle(self, number: int, error: Exception) -> int:
        await trio.sleep(self.handler / 4)
        return number

    async def source(self) -> AsyncIterator[int]:
        for number, gap in zip(range(len(self.calls)), cycle(self.gaps), strict=False):
            await trio.sleep(gap / 4)
            yield number


class Service:
    """Makes the calls of a load."""

    def __init__(self, load: Load) -> None:
        self.load = load
        self.attempts: Counter[int] = Counter()
        self.calls = 0
        self.started_at = -math.inf  # the latest first call of a record

    async def __call__(self, numbers: Any) -> Any:
        self.calls += 1
        together = [numbers] if self.load.group is None else numbers
        if any(not self.attempts[number] for number in together):
            self.started_at = trio.current_time()
        await trio.sleep(max(self.load.calls[number][1] for number in together) / 4)
        ends = [self.end(number) for number in together]
        if "raises" in ends:
            raise OSError
        if "fails" in ends:
            raise ValueError
        return ends[0] if self.load.group is None else ends

    def end(self, number: int) -> str:
        ends = self.load.calls[number][2]
        self.attempts[number] += 1
        attempt = self.attempts[number]
        return ends[attempt - 1] if attempt <= len(ends) else "done"


class Truth(trio.abc.Instrument):
    """Adds up what the state of the operator says, from one instant to the next."""

    def __init__(self, operator: Any, service: Service) -> None:
        self.operator, self.service, self.load = operator, service, service.load
        self.seconds = dict.fromkeys([*REASONS, "busy", "consumer"], 0.0)
        self._begin = self._at = trio.current_time()
        self.supply: float | None = None  # when it has ended
        self._before = 0, 0, 0  # before the latest instant: how many calls had begun, ran, and waited for a gate
        self._state: dict[str, float] = {}
        self._running = self._held = 0
        self._is_idle = self._was_idle = False

    def before_io_wait(self, timeout: float) -> None:
        now = trio.current_time()
        for what, number in self._state.items():
            self.seconds[what] += number * (now - self._at)
        if self.supply is None and now > self._at and self._has_supply_ended():
            self.supply = self._at - self._begin
        self._at, self._state = now, self._read()

    def _has_supply_ended(self) -> bool:
        """Whether no record was left to start before or after the latest instant, when a call ended, began or was held.

        Without calls, after it suffices.
        """
        before, self._before = self._before, (self.service.calls, self._running, self._held)
        was_idle, self._was_idle = self._was_idle, self._is_idle
        has_changed = before != self._before
        last = max(self.service.started_at, self.operator._ledger.flow.input_end)
        if self._is_idle and not self._running:
            return True
        return (was_idle or self._is_idle) and has_changed and self._at > last

    def _read(self) -> dict[str, float]:
        ledger = self.operator._ledger
        self._running = running = ledger.counters.running
        self._held = ledger.counters.at_gate + ledger.flow.at_keys
        has_free_slot = running < self.load.capacity
        self._is_idle = ledger.input_ended and has_free_slot and self._reason() is None and not self._new()
        state = {"consumer": float(bool(ledger.leaving))}
        if ledger.flow._supply_end is None:
            state["busy"] = running
            if has_free_slot and (reason := self._reason()) is not None:
                state[reason] = 1.0
        return state

    def _new(self) -> list[Any]:
        """The records without an attempt that are in no call."""
        running = self.operator._parts._scheduler.running.scopes
        in_groups = {id(each) for call in running for each in call.records}
        entries = self.operator._ledger.order.entries()
        return [each for each in entries if each.results is None and not each.attempts and id(each) not in in_groups]

    def _reason(self) -> str | None:
        """Why nothing starts in a free slot."""
        operator, ledger = self.operator, self.operator._ledger
        scheduler = operator._parts._scheduler
        lines = [waiting.waits_in for waiting in scheduler.waiting.values() if waiting.waits_in is not None]
        new = self._new()
        gated = {id(each) for waiting in scheduler.waiting.values() for each in waiting.entry.records}
        startable = [entry for entry in new if id(entry) not in gated and ledger.order.may_start(entry)]
        if any(line.common is None for line in lines):
            return "gated"
        if ledger.flow.must_retry_first and startable:
            return "retries"
        if lines:
            return "gated"
        if len(startable) < len(new) - len(gated & set(map(id, new))):
            return "keyed"
        if operator._feeder.has_room.is_awaited:
            return "full"
        return None if ledger.input_ended else "source"


CALLS = st.tuples(
    st.integers(0, 2),
    st.sampled_from([0, 1, 4, 4, 40]),
    st.lists(st.sampled_from(["again", "raises", "raises", "fails"]), max_size=2).map(tuple)
    | st.just(())
    | st.just(()),
)
FEW = st.sampled_from([0, 0, 1, 4, 20])
LOADS = st.builds(
    Load,
    mode=st.sampled_from(["ordered", "unordered", "keyed"]),
    calls=st.lists(CALLS, min_size=1, max_size=25).map(tuple),
    capacity=st.sampled_from([1, 2, 5]),
    more_buffer=st.sampled_from([0, 1, 5, 50]),
    gaps=st.lists(FEW, min_size=1, max_size=3).map(tuple),
    pauses=st.lists(FEW, min_size=1, max_size=3).map(tuple),
    backoff=st.sampled_from([0, 2, 20]),
    handler=FEW,
    gate=st.sampled_from(["none", "none", "for all", "per key"]),
    group=st.none() | st.none() | st.tuples(st.integers(1, 4), FEW),
)


async def account_of(load: Load) -> tuple[Totals, Truth]:
    service = Service(load)
    operator = AsyncWaitOperator(service, source=load.source(), **load.options())
    pauses = cycle(load.pauses)
    truth = Truth(operator, service)
    trio.lowlevel.add_instrument(truth)
    async with operator:
        async for _ in operator.output:
            await trio.sleep(next(pauses) / 4)
    trio.lowlevel.remove_instrument(truth)
    return operator.totals(), truth


@example(
    Load(
        mode="ordered",
        calls=((0, 0, ("again",)), (0, 0, ()), (0, 40, ())),
        capacity=2,
        more_buffer=1,
        gaps=(0,),
        pauses=(0,),
        backoff=20,
        handler=0,
        gate="for all",
        group=None,
    )  # the retry is due while a gate holds it back
)
@given(LOADS)
def test_each_sum_is_what_the_state_of_the_operator_adds_up_to(load: Load) -> None:
    totals, truth = on_virtual_time(lambda: account_of(load))
    found = {what: getattr(totals, what) for what in truth.seconds}
    assert found == pytest.approx(truth.seconds, abs=1e-5 * (1 + totals.seconds))
    assert totals.supply == pytest.approx(totals.seconds if truth.supply is None else truth.supply, abs=1e-6)


@given(LOADS)
def test_each_second_with_a_free_slot_has_at_most_one_reason(load: Load) -> None:
    totals, _ = on_virtual_time(lambda: account_of(load))
    times = [getattr(totals, what) for what in REASONS]
    assert min(times) >= 0.0
    assert sum(times) <= totals.supply * (1 + 1e-9) + 1e-9
    assert totals.busy <= totals.capacity * totals.supply + 1e-6
