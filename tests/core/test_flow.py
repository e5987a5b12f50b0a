"""The flow: where the time goes, with instants as plain numbers."""

from __future__ import annotations

from trio_asyncio_io._account.flow import Flow, Stopwatch
from trio_asyncio_io._core.ledger import Ledger
from trio_asyncio_io._core.queue import InputOrder


def flow_from_zero() -> Flow:
    flow = Ledger(InputOrder(), 2, capacity=2).flow
    flow.begin((0.0, 0.0))
    return flow


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
    flow = flow_from_zero()
    flow.note_free_slots(0.0, idles=True)
    flow.block(3.0, 5.0)
    totals = flow.totals(lambda: (5.0, 2.5))
    assert (totals.source, totals.blocked) == (2.0, 3.0)


def test_the_clocks_are_not_read_after_the_end() -> None:
    flow = flow_from_zero()
    flow.end((8.0, 2.0))
    totals = flow.totals(lambda: (100.0, 50.0))
    assert (totals.seconds, totals.cpu) == (8.0, 2.0)
