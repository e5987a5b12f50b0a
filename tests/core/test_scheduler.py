"""The scheduler: which attempt may start, with instants as plain numbers."""

from __future__ import annotations

from collections import Counter
from contextvars import copy_context
from heapq import heappop, heappush
from itertools import repeat
from math import inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_asyncio_io._core.admission import Admission, GateLine, SharedGate
from trio_asyncio_io._core.gate import OK, Gate, Outcome, RefusedError
from trio_asyncio_io._core.ledger import Ledger
from trio_asyncio_io._core.queue import Entry, InputOrder, KeyOrder
from trio_asyncio_io._core.scheduler import RunningCalls, Scheduler

ERROR = OSError()


class Watched(Gate):
    """A gate whose answers and reports are recorded.

    Args:
        interval: Seconds between two starts.
        at_once: Upper limit of running calls.
    """

    def __init__(self, interval: float = 0.0, at_once: float = inf) -> None:
        self.interval, self.at_once = interval, at_once
        self.free_at, self.running = 0.0, 0
        self.admitted_at: float | None = None
        self.starts: list[float] = []

    def delay(self, now: float, weight: float) -> float:
        delay = inf if self.running >= self.at_once else max(0.0, self.free_at - now)
        self.admitted_at = now if delay == 0 else None
        return delay

    def started(self, now: float, weight: float) -> None:
        assert self.admitted_at == now, "one answer has admitted two calls"
        self.admitted_at = None
        self.starts.append(now)
        self.free_at = now + self.interval
        self.running += 1

    def ended(self, now: float, seconds: float, outcome: Outcome, weight: float) -> None:
        self.running -= 1
        assert self.running >= 0


def line_of(gates: list[Gate], given: list[Gate], common: GateLine | None = None) -> GateLine:
    """A line of an operator whose calls run all the time."""
    line = GateLine(given, common, count_running=lambda: 1)
    line.open([SharedGate(gate) for gate in gates])
    return line


class FakeGates:
    """The gates of an operator: common ones, and one for each first character."""

    def __init__(self, common: list[Gate], per_key: Any = None) -> None:
        self.react_to_ends = True
        self.has_keys = per_key is not None
        self.line = line_of(common, common)
        self.admissions: dict[int, Admission] = {}
        self.keys: dict[str, GateLine] = {}
        self._common, self._per_key = common, per_key

    def line_of(self, value: Any) -> GateLine:
        if self._per_key is None:
            return self.line
        if value[0] not in self.keys:
            gate = self._per_key()
            self.keys[value[0]] = line_of([gate], [*self._common, gate], self.line)
        return self.keys[value[0]]

    def end(self, call: Entry, since: float, end: Outcome, now: float) -> None:
        self.admissions.pop(call.sequence).end(repeat(end), now)


def made(
    values: Any, *, capacity: int = 2, timeout: float = inf, gates: FakeGates | None = None
) -> tuple[Ledger, Scheduler]:
    ledger = Ledger(InputOrder(), 100, capacity=capacity)
    scheduler = Scheduler(ledger, capacity, timeout, gates=gates, on_failure=lambda *_: ledger.stop_starting())
    for value in values:
        ledger.accept(value, 0.0)
    return ledger, scheduler


def start(scheduler: Scheduler, now: float) -> Entry | None:
    """The next attempt; its call begins."""
    if not scheduler.starts:
        scheduler.assign(now)
    if not scheduler.starts or not scheduler.ledger.may_start:
        return None
    entry, *_ = scheduler.take(now)
    entry.attempts += 1
    return entry


def values_of(scheduler: Scheduler, now: float) -> list[Any]:
    """The values of all attempts that start now."""
    found = []
    while (entry := start(scheduler, now)) is not None:
        found.append(entry.value)
    return found


# Order


def test_new_records_start_in_arrival_order_in_free_slots() -> None:
    _, scheduler = made("abc", capacity=2)
    assert scheduler.is_plain
    assert values_of(scheduler, 0.0) == ["a", "b"]


def test_retries_start_before_new_records_and_those_with_few_attempts_first() -> None:
    ledger, scheduler = made("abcd", capacity=3)
    a, b, c = [start(scheduler, 0.0) for _ in range(3)]
    assert a is not None
    assert b is not None
    assert c is not None
    b.attempts = 2
    for entry in (b, a):
        assert scheduler.retry(entry, 1.0, 0.0, ERROR)
    ledger.complete(c, ["C"], 0.0)
    assert values_of(scheduler, 1.0) == ["a", "b", "d"]


def test_a_record_in_a_backoff_has_no_slot() -> None:
    ledger, scheduler = made("xab", capacity=2)
    _, a = start(scheduler, 0.0), start(scheduler, 0.0)
    assert a is not None
    assert scheduler.retry(a, 5.0, 1.0, ERROR)
    assert ledger.counters.running == 1
    assert values_of(scheduler, 1.0) == ["b"]
    assert scheduler.wake_at() == 6.0


def test_new_records_wait_while_as_many_wait_for_their_retry_as_can_run() -> None:
    ledger, scheduler = made("abcd", capacity=2)
    retries = [start(scheduler, 0.0), start(scheduler, 0.0)]
    for entry, now in zip(retries, (1.0, 2.0), strict=True):
        assert entry is not None
        assert scheduler.retry(entry, 5.0, now, ERROR)
        assert scheduler.may_assign() == (now == 1.0)
    assert values_of(scheduler, 2.0) == []
    assert ledger.flow.retries.is_on
    assert scheduler.wake_at() == 6.0
    assert values_of(scheduler, 6.0) == ["a", "c"]
    assert ledger.flow.retries.seconds(9.0) == 4.0
    assert not scheduler.may_assign()


def test_with_gates_per_key_new_records_do_not_wait_for_retries() -> None:
    gates = FakeGates([], lambda: Watched(interval=100.0))
    _, scheduler = made(["a1", "b1", "c1", "d1"], capacity=2, gates=gates)
    retries = [start(scheduler, 0.0), start(scheduler, 0.0)]
    for entry in retries:
        assert entry is not None
        gates.admissions[entry.sequence].end([OK], 1.0)
        assert scheduler.retry(entry, 2.0, 1.0, ERROR)
    assert values_of(scheduler, 1.0) == ["c1", "d1"]


def test_the_time_of_a_record_stands_still_while_it_waits_for_a_slot() -> None:
    ledger, scheduler = made("xab", capacity=2, timeout=4.0)
    _, a = start(scheduler, 0.0), start(scheduler, 0.0)
    assert a is not None
    assert scheduler.retry(a, 1.0, 1.0, ERROR)
    b = start(scheduler, 1.0)
    assert b is not None
    ledger.complete(b, ["B"], 9.0)
    assert start(scheduler, 9.0) is a
    assert scheduler.running.set_retry(a, "worker") == 9.0 + 2.0
    assert ledger.statistics().slot_wait_seconds == 1.0 + 7.0


def test_the_waits_and_the_start_of_a_record_with_a_context_are_accounted_for() -> None:
    ledger, scheduler = made("a", gates=FakeGates([Watched(interval=2.0)]))
    a = start(scheduler, 0.0)
    assert a is not None
    assert scheduler.retry(a, 1.0, 0.0, ERROR, context=copy_context())
    assert values_of(scheduler, 1.0) == []
    assert values_of(scheduler, 2.0) == ["a"]
    assert (ledger.counters.running, ledger.counters.gate_wait_seconds) == (1, 1.0)


@pytest.mark.parametrize(("delay", "fits"), [(2.9, True), (3.0, False), (3.1, False)])
def test_of_a_deadline_and_an_end_of_a_backoff_at_one_instant_the_deadline_wins(delay: float, fits: bool) -> None:
    _, scheduler = made("a", timeout=4.0)
    a = start(scheduler, 0.0)
    assert a is not None
    assert scheduler.retry(a, delay, 1.0, ERROR) is fits


def test_a_record_whose_key_is_held_back_is_passed_over() -> None:
    gates = FakeGates([], lambda: Watched(interval=10.0))
    _, scheduler = made(["a1", "a2", "b1", "a3", "c1"], capacity=5, gates=gates)
    assert values_of(scheduler, 0.0) == ["a1", "b1", "c1"]
    assert scheduler.wake_at() == 10.0
    assert values_of(scheduler, 10.0) == ["a2"]
    assert values_of(scheduler, 20.0) == ["a3"]


def test_while_a_common_gate_holds_the_first_record_none_starts() -> None:
    class Heavy(Watched):
        weight = staticmethod(len)

        def delay(self, now: float, weight: float) -> float:
            super().delay(now, weight)
            return max(0.0, weight - now)

    _, scheduler = made(["xxxxx", "x"], gates=FakeGates([Heavy()]))
    assert values_of(scheduler, 2.0) == []
    assert values_of(scheduler, 5.0) == ["xxxxx", "x"]


def test_a_change_of_a_gate_matters_while_a_record_waits_for_it() -> None:
    _, scheduler = made("ab", gates=FakeGates([Watched(at_once=1)]))
    assert not scheduler.change(scheduler._line)
    assert values_of(scheduler, 0.0) == ["a"]
    assert scheduler.change(scheduler._line)


def test_a_refused_call_has_its_slot_and_its_reason() -> None:
    class Refusing(Watched):
        def delay(self, now: float, weight: float) -> float:
            raise RefusedError("closed")

    ledger, scheduler = made("a", gates=FakeGates([Refusing()]))
    scheduler.assign(0.0)
    *_, refusal = scheduler.take(0.0)
    assert str(refusal) == "closed"
    assert ledger.counters.running == 1


@pytest.mark.parametrize("method", ["delay", "started"])
def test_a_broken_gate_starts_nothing(method: str) -> None:
    class Broken(Watched): ...

    def fail(*arguments: Any) -> float:
        raise ZeroDivisionError

    setattr(Broken, method, fail)
    first = Watched()
    ledger, scheduler = made("ab", gates=FakeGates([first, Broken()]))
    assert start(scheduler, 0.0) is None
    assert (ledger.counters.running, ledger.may_start, first.running) == (0, False, 0)


def test_nothing_starts_after_the_stop() -> None:
    ledger, scheduler = made("abc", capacity=2)
    a = start(scheduler, 0.0)
    assert a is not None
    scheduler.retry(a, 1.0, 0.0, ERROR)
    ledger.stop_starting()
    assert start(scheduler, 5.0) is None
    assert scheduler.wake_at() == inf
    assert not scheduler.may_assign()
    scheduler.close(5.0)
    assert ledger.statistics().cancelled == 1


def test_the_timer_does_not_wake_for_a_gate_while_all_slots_are_busy() -> None:
    gates = FakeGates([Watched(interval=1.0)])
    _, scheduler = made("abc", capacity=1, gates=gates)
    assert values_of(scheduler, 0.0) == ["a"]
    assert scheduler.wake_at() == inf


@pytest.mark.parametrize("is_retry", [False, True])
def test_a_record_that_waits_for_a_gate_when_the_operator_ends_has_waited_for_it(is_retry: bool) -> None:
    gates = FakeGates([Watched(interval=100.0)])
    ledger, scheduler = made("ab", gates=gates)
    a = start(scheduler, 0.0)
    assert a is not None
    if is_retry:
        gates.admissions[0].end([OK], 1.0)
        assert scheduler.retry(a, 1.0, 1.0, ERROR)
    else:
        gates.admissions[0].end([OK], 2.0)
        ledger.complete(a, ["A"], 2.0)
    assert values_of(scheduler, 2.0) == []
    waiting = ledger.counters.at_gate
    assert waiting == gates.line.running == len(gates.line.heap) == len(scheduler.waiting) > 0
    waited = ledger.counters.gate_wait_seconds + sum(7.0 - each.since for each in scheduler.waiting.values())
    ledger.stop_starting()
    scheduler.close(7.0)
    assert (ledger.counters.at_gate, gates.line.running, len(gates.line.heap)) == (0, 0, 0)
    assert ledger.counters.gate_wait_seconds == waited
    assert sum(ledger.counters.seconds_by_gate.values()) > 0
    assert ledger.counters.cancelled == is_retry


# Deadlines


def entry_since(since: float, sequence: int, attempts: int = 1) -> Entry:
    entry = Entry("a", "a", sequence, since)
    entry.attempts = attempts
    return entry


def test_deadlines_expire_in_order_and_those_of_retries_among_them() -> None:
    calls = RunningCalls(2.0)
    for sequence, since in enumerate([0.0, 0.5, 3.0]):
        calls.scopes[entry_since(since, sequence)] = sequence
    calls.set_retry(entry_since(-1.0, 3, attempts=2), "retry")
    assert calls.first() == 1.0
    assert calls.expire(1.0) == ["retry"]
    assert calls.first() == 2.0
    assert calls.expire(2.5) == [0, 1]
    assert calls.first() == 5.0


def test_a_retry_that_has_ended_does_not_expire() -> None:
    calls = RunningCalls(2.0)
    entry = entry_since(0.0, 0, attempts=2)
    calls.set_retry(entry, "retry")
    del calls.scopes[entry]
    assert calls.expire(9.0) == []


# Random runs on a heap of end times, without a task

CALLS = st.lists(st.tuples(st.sampled_from("abc"), st.lists(st.tuples(st.integers(1, 9), st.booleans()))), max_size=20)


@given(
    calls=CALLS,
    capacity=st.integers(1, 4),
    timeout=st.sampled_from([7.5, 20.5, inf]),
    backoff=st.sampled_from([0.0, 1.0, 4.0]),
    interval=st.sampled_from([None, 0.0, 2.0]),
    key_interval=st.sampled_from([None, 0.0, 5.0]),
    at_once=st.sampled_from([1, 2, inf]),
    keyed=st.booleans(),
)
def test_random_runs_keep_the_invariants(
    *,
    calls: Any,
    capacity: int,
    timeout: float,
    backoff: float,
    interval: float | None,
    key_interval: float | None,
    at_once: float,
    keyed: bool,
) -> None:
    common = [] if interval is None else [Watched(interval, at_once)]
    gates = FakeGates([*common], None if key_interval is None else lambda: Watched(key_interval))
    ledger = Ledger(KeyOrder(lambda v: v[0]) if keyed else InputOrder(), 99, capacity=capacity)
    failures: list[Any] = []
    scheduler = Scheduler(
        ledger,
        capacity,
        timeout,
        gates=gates if common or key_interval is not None else None,
        on_failure=lambda error, entry: failures.append(error),
    )
    for number, (key, _) in enumerate(calls):
        ledger.accept((key, number), 0.0)
    now, running, spent, ended = 0.0, list[tuple[float, int, Entry, bool]](), Counter[int](), Counter[str]()
    began: dict[int, float] = {}
    while True:
        while (entry := start(scheduler, now)) is not None:
            steps = calls[entry.sequence][1]
            seconds, is_good = steps[entry.attempts - 1] if entry.attempts <= len(steps) else (1, True)
            end = min(now + seconds, entry.since + timeout)
            heappush(running, (end, entry.sequence, entry, is_good and now + seconds < entry.since + timeout))
            began[entry.sequence] = now
        assert ledger.counters.running == len(running) <= capacity
        keys = [each[2].value[0] for each in running]
        assert not keyed or len(keys) == len(set(keys))
        instants = [instant for instant in (scheduler.wake_at(), running[0][0] if running else inf) if instant < inf]
        if not instants:
            break
        assert min(instants) >= now
        now = min(instants)
        scheduler.advance(now)
        while running and running[0][0] <= now:
            _, sequence, entry, is_good = heappop(running)
            spent[sequence] += now - began[sequence]
            if (admission := gates.admissions.pop(sequence, None)) is not None:
                admission.end([OK] * len(admission.weights), now)
                scheduler.change(scheduler._line)
                for each in gates.keys.values():
                    scheduler.change(each)
            if is_good:
                ledger.complete(entry, ["x"], now)
                ended["completed"] += 1
            elif now < entry.since + timeout and scheduler.retry(entry, backoff, now, ERROR):
                spent[sequence] += backoff
            else:
                ledger.time_out(entry, now)
                ledger.finish(entry, [], now)
                ended["timed out"] += 1
    assert not failures
    assert ended.total() == len(calls)
    assert all(seconds <= timeout for seconds in spent.values())
    assert all(gate.running == 0 for gate in common)
    numbers = ledger.statistics()
    assert (numbers.running, numbers.completed, numbers.timed_out) == (0, ended["completed"], ended["timed out"])
    assert numbers.latency_seconds == pytest.approx(sum(spent.values()))
