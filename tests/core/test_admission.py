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


class Switch(Gate):
    """Admits calls while it is open."""

    is_open = True

    def delay(self, now: float, weight: float) -> float:
        return 0.0 if self.is_open else 10.0


class Other(Switch):
    pass


RANK = (True, 0, 0)


def close(only: Switch, line: GateLine, now: float) -> None:
    """Only this gate of the line holds back its calls from now on."""
    for gate in line.given:
        gate.is_open = gate is not only  # type: ignore[attr-defined]
    line.delay(line.unweighted, now)


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
        line.join(call, RANK, 3.0)
        assert line.waits_of(call, 5.0) == {label: 2.0}


def test_a_call_that_has_ended_cannot_settle() -> None:
    budget = Budget(10.0, weight=abs)
    line = line_of(budget)
    call = Admission(line, 0.0, (4.0,)).start()
    call.end([OK], 1.0)
    assert (line.running, budget.spent, budget.reserved) == (0, 4.0, 0.0)
    with pytest.raises(CallEndedError):
        call.check_settle(1.0, None)


def test_the_time_counts_for_the_gate_that_holds_the_line_back() -> None:
    first, second = Switch(), Other()
    line, call = line_of(first, second), waiting()
    close(first, line, 4.0)
    line.join(call, RANK, 5.0)
    close(second, line, 15.0)
    close(second, line, 17.0)
    close(first, line, 18.0)
    assert line.waits_of(call, 20.0) == {"Switch": 10.0 + 2.0, "Other": 3.0}


def test_a_call_that_joins_later_waits_only_from_then_on() -> None:
    first, second = Switch(), Other()
    line, call = line_of(first, second), waiting()
    close(first, line, 0.0)
    line.join(call, RANK, 9.0)
    assert line.waits_of(call, 9.0) == {}
    close(second, line, 10.0)
    assert line.waits_of(call, 12.0) == {"Switch": 1.0, "Other": 2.0}
