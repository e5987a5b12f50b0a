"""The flow: where the time goes, with instants as plain numbers."""

from __future__ import annotations

from trio_asyncio_io._account.flow import Stopwatch
from trio_asyncio_io._account.verdict import Totals
from trio_asyncio_io._core.ledger import Ledger
from trio_asyncio_io._core.queue import Entry, InputOrder


def ledger_of(*elements: str, bound: int = 2, capacity: int = 2) -> Ledger:
    ledger = Ledger(InputOrder(), bound, capacity=capacity)
    ledger.flow.begin((0.0, 0.0))
    for element in elements:
        ledger.accept(element, 0.0)
    return ledger


def totals_at(ledger: Ledger, now: float) -> Totals:
    """The totals of the verdict, which include the time of the invocations that run."""
    flow = ledger.flow
    return (
        flow._totals((now, now / 2), flow._running(now)) if flow._end is None else flow.totals(lambda: (now, now / 2))
    )


def start(ledger: Ledger, now: float) -> Entry:
    """Start the next job and make its first call."""
    entry = ledger.start(now)
    entry.attempts = 1
    return entry


def test_a_stopwatch_counts_the_time_for_which_it_is_on() -> None:
    wait = Stopwatch()
    wait.turn(True, 1.0)
    wait.turn(True, 2.0)
    assert wait.seconds(4.0) == 3.0
    wait.turn(False, 5.0)
    wait.turn(False, 6.0)
    assert wait.seconds(9.0) == 4.0
    wait.exclude(1.0, 9.0)
    assert wait.seconds(9.0) == 4.0
    wait.turn(True, 10.0)
    wait.exclude(1.0, 12.0)
    assert wait.seconds(12.0) == 5.0
    wait.exclude(9.0, 13.0)
    assert wait.seconds(13.0) == 4.0


def test_the_time_in_which_a_call_blocks_the_loop_is_not_that_of_the_source() -> None:
    ledger = ledger_of()
    ledger.note_free_slots(0.0, idles=True)
    ledger.flow.block(3.0, 5.0)
    assert (totals_at(ledger, 5.0).source, totals_at(ledger, 5.0).blocked) == (2.0, 3.0)
