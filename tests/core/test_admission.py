"""Admissions and lines, with instants as plain numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from trio_asyncio_io._core.admission import Admission, CallEndedError, Holders, Line, Passage
from trio_asyncio_io._core.gate import OK
from trio_asyncio_io.gates import Budget, Gate


class Closed(Gate):
    """Never admits a call before 10."""

    def delay(self, now: float, weight: float) -> float:
        return 10.0 - now


@dataclass
class InUse:
    """A gate whose clock is that of the test."""

    gate: Gate

    offset = 0.0

    def notify_others(self) -> None: ...

    def has_calls(self) -> bool:
        return False


def test_gates_of_one_class_are_told_apart_by_name() -> None:
    named, nameless = Closed(), Closed()
    named.name = "tokens"
    for gate, label in ((named, "Closed 'tokens'"), (nameless, "Closed")):
        line: Any = Line([InUse(gate)])  # type: ignore[list-item]
        line.delay((1.0,), 2.0)
        assert line.holders.seconds(5.0)[label] == 3.0


def test_the_end_of_an_admission_is_final() -> None:
    budget = Budget(10.0, weight=abs)
    passage = Passage([budget], [InUse(budget)])  # type: ignore[list-item]
    call = Admission(passage, 0.0, (4.0,)).start()
    for _ in range(2):
        call.end([OK], 1.0)
        assert (passage.running, budget.spent, budget.reserved) == (0, 4.0, 0.0)
    with pytest.raises(CallEndedError):
        call.check_settle(1.0, None)


def test_the_time_counts_for_the_gate_that_holds_the_line_back() -> None:
    holders = Holders()
    holders.change("breaker", 5.0)
    joined = holders.seconds(5.0)
    holders.change("rate", 15.0)
    holders.change("rate", 17.0)
    holders.change("breaker", 18.0)
    assert holders.since(joined, 20.0) == {"breaker": 10.0 + 2.0, "rate": 3.0}


def test_a_call_that_joins_later_waits_only_from_then_on() -> None:
    holders = Holders()
    holders.change("breaker", 0.0)
    joined = holders.seconds(9.0)
    assert holders.since(joined, 9.0) == {}
    holders.change("rate", 10.0)
    assert holders.since(joined, 12.0) == {"breaker": 1.0, "rate": 2.0}
