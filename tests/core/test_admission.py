"""Admissions and lines, with instants as plain numbers."""

from __future__ import annotations

import pytest

from trio_asyncio_io._core.admission import Admission, CallEndedError, GateLine, SharedGate, WaitingCall
from trio_asyncio_io._core.gate import OK
from trio_asyncio_io._core.queue import Entry
from trio_asyncio_io.gates import Budget, Gate


class Closed(Gate):
    """Never admits a call before 10."""

    def delay(self, now: float, weight: float) -> float:
        return 10.0 - now


def line_of(*gates: Gate) -> GateLine:
    line = GateLine(gates)
    line.open([SharedGate(gate) for gate in gates])
    return line


def waiting() -> WaitingCall:
    return WaitingCall(Entry("a", "a", 0, 0.0), 0.0)


def test_gates_of_one_class_are_told_apart_by_name() -> None:
    named, nameless = Closed(), Closed()
    named.name = "tokens"
    for gate, label in ((named, "Closed 'tokens'"), (nameless, "Closed")):
        line, call = line_of(gate), waiting()
        line.delay((1.0,), 2.0)
        line.join(call, 3.0)
        assert line.waits_of(call, 5.0) == {label: 2.0}


def test_the_end_of_an_admission_is_final() -> None:
    budget = Budget(10.0, weight=abs)
    line = line_of(budget)
    call = Admission(line, 0.0, (4.0,)).start()
    for _ in range(2):
        call.end([OK], 1.0)
        assert (line.running, budget.spent, budget.reserved) == (0, 4.0, 0.0)
    with pytest.raises(CallEndedError):
        call.check_settle(1.0, None)


def test_the_time_counts_for_the_gate_that_holds_the_line_back() -> None:
    line, call = line_of(), waiting()
    line.hold("breaker", 4.0)
    line.join(call, 5.0)
    line.hold("rate", 15.0)
    line.hold("rate", 17.0)
    line.hold("breaker", 18.0)
    assert line.waits_of(call, 20.0) == {"breaker": 10.0 + 2.0, "rate": 3.0}


def test_a_call_that_joins_later_waits_only_from_then_on() -> None:
    line, call = line_of(), waiting()
    line.hold("breaker", 0.0)
    line.join(call, 9.0)
    assert line.waits_of(call, 9.0) == {}
    line.hold("rate", 10.0)
    assert line.waits_of(call, 12.0) == {"breaker": 1.0, "rate": 2.0}
