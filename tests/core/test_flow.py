"""The flow: where the time goes, with instants as plain numbers."""

from __future__ import annotations

from trio_asyncio_io._account.flow import Stopwatch
from trio_asyncio_io._account.verdict import Totals
from trio_asyncio_io._core.ledger import Ledger
from trio_asyncio_io._core.queue import Entry, InputOrder, KeyOrder


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


def test_waits_for_retries_are_in_the_account() -> None:
    ledger = ledger_of("a")
    ledger.flow.must_retry_first = True
    ledger.note_free_slots(1.0)
    assert totals_at(ledger, 3.0).retries == 2.0
    ledger.flow.must_retry_first = False
    ledger.note_free_slots(4.0, idles=True)
    assert totals_at(ledger, 9.0).retries == 3.0


def test_running_invocations_count_as_busy_slots() -> None:
    ledger = ledger_of("a", "b")
    start(ledger, 0.0)
    entry = start(ledger, 1.0)
    assert totals_at(ledger, 4.0).in_flight == (4.0 + 3.0) / 4.0
    ledger.complete(entry, ["b"], 4.0)
    assert totals_at(ledger, 10.0).in_flight == (10.0 + 3.0) / 10.0


def test_a_handler_counts_as_a_busy_slot_and_not_as_latency() -> None:
    ledger = ledger_of("a")
    entry = start(ledger, 0.0)
    ledger.fail(entry, ValueError(), 1.0)
    assert totals_at(ledger, 3.0).in_flight == 1.0
    ledger.finish(entry, ["A"], 5.0)
    totals = totals_at(ledger, 10.0)
    assert (totals.in_flight, totals.mean_latency) == (0.5, 1.0)


def test_a_full_buffer_starves_only_while_a_slot_is_free() -> None:
    ledger = ledger_of("a", "b")
    start(ledger, 0.0)
    b = start(ledger, 0.0)
    ledger.wait_for_room(0.0)  # both slots are busy
    ledger.complete(b, ["B"], 4.0)
    ledger.note_free_slots(4.0, idles=True)
    ledger.have_room(7.0)
    totals = totals_at(ledger, 10.0)
    assert (totals.full, totals.source) == (3.0, 3.0)


def test_the_last_slot_that_is_taken_ends_the_time_of_the_source() -> None:
    ledger = ledger_of()
    ledger.note_free_slots(0.0, idles=True)
    for now in (2.0, 3.0):
        ledger.accept("a", now)
        start(ledger, now)
    assert totals_at(ledger, 9.0).source == 3.0


def test_a_record_that_waits_for_its_key_ends_the_time_of_the_source() -> None:
    ledger = Ledger(KeyOrder(lambda element: element), 9, capacity=2)
    ledger.flow.begin((0.0, 0.0))
    ledger.note_free_slots(0.0, idles=True)
    ledger.accept("a", 1.0)
    entry = start(ledger, 1.0)
    ledger.accept("a", 2.0)
    ledger.complete(entry, ["A"], 5.0)
    start(ledger, 5.0)
    totals = totals_at(ledger, 6.0)
    assert (totals.source, totals.keyed) == (2.0 + 1.0, 3.0)


def test_the_time_after_the_last_start_does_not_count() -> None:
    ledger = ledger_of("a", "b")
    ledger.end_input(0.0)
    a, b = start(ledger, 0.0), start(ledger, 0.0)
    ledger.complete(a, ["A"], 2.0)
    ledger.note_free_slots(2.0, idles=True)
    ledger.complete(b, ["B"], 50.0)
    ledger.note_free_slots(50.0, idles=True)
    assert totals_at(ledger, 50.0).in_flight == 2.0


def test_the_clocks_are_not_read_after_the_end() -> None:
    ledger = ledger_of()
    ledger.flow.end((8.0, 2.0))
    totals = totals_at(ledger, 100.0)
    assert (totals.seconds, totals.cpu) == (8.0, 2.0)


def test_slots_wait_for_a_gate_of_a_key_if_the_last_records_leave_some_free() -> None:
    ledger = ledger_of("a", "b", capacity=3)
    ledger.wait_for_gate(ledger.take(), 0.0, of_key=True)
    ledger.end_input(0.0)
    start(ledger, 0.0)
    assert totals_at(ledger, 2.0).gated == 2.0


def test_a_gate_holds_calls_back_only_while_a_slot_is_free() -> None:
    """A retry may join a call at the gate, and take the only slot when the gate admits it."""
    ledger = ledger_of("a", "b", capacity=1)
    ledger.wait_for_gate(ledger.take(), 0.0, of_key=False)
    ledger.note_free_slots(0.0)
    start(ledger, 2.0)
    ledger.note_free_slots(2.0)
    assert totals_at(ledger, 9.0).gated == 2.0


def test_the_supply_ends_at_one_instant_in_whatever_order_its_events_come() -> None:
    ledgers = [ledger_of("a", "b", capacity=3), ledger_of("a", "b", capacity=3)]
    for number, ledger in enumerate(ledgers):
        a = start(ledger, 0.0)
        if number:
            ledger.complete(a, ["A"], 2.0)
            ledger.note_free_slots(2.0, idles=True)
            start(ledger, 2.0)
            ledger.end_input(2.0)
        else:
            ledger.end_input(2.0)
            start(ledger, 2.0)
            ledger.complete(a, ["A"], 2.0)
            ledger.note_free_slots(2.0, idles=True)
    assert [totals_at(ledger, 9.0).supply for ledger in ledgers] == [9.0, 9.0]
