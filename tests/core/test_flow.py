"""The flow: where the time goes, with instants as plain numbers."""

from __future__ import annotations

from trio_asyncio_io import Histogram
from trio_asyncio_io._core.flow import Latencies, Wait
from trio_asyncio_io._core.ledger import Ledger
from trio_asyncio_io._core.ordered import OrderedStreamElementQueue
from trio_asyncio_io._core.verdict import Evidence, LoadClass


def ledger_of(*elements: str, bound: int = 2, capacity: int = 2) -> Ledger:
    ledger = Ledger(OrderedStreamElementQueue(bound), capacity=capacity)
    ledger.flow.begin((0.0, 0.0))
    for element in elements:
        ledger.accept(element, 0.0)
    return ledger


def evidence_at(ledger: Ledger, now: float) -> Evidence:
    return ledger.flow.evidence(lambda: (now, now / 2), ledger.queue)


def test_the_waits_of_several_tasks_count_once() -> None:
    wait = Wait()
    wait.begin(1.0)
    wait.begin(2.0)
    wait.end(3.0)
    assert wait.seconds(4.0) == 3.0
    wait.end(5.0)
    assert wait.seconds(9.0) == 4.0
    assert not wait.is_on


def test_a_latency_counts_at_the_load_that_the_calls_shared() -> None:
    ledger = ledger_of("a", "b", "c", bound=3, capacity=3)
    a, b, c = [ledger.start(0.0) for _ in range(3)]
    for entry in (c, a, b):
        ledger.complete(entry, ["x"], 2.0)
    assert ledger.flow.latencies.loads() == (LoadClass(3, 3, Histogram.of([2.0]).p50),)


def test_the_latency_of_a_failure_has_no_load() -> None:
    latencies = Latencies(4)
    latencies.add[0](5.0)
    latencies.add[2](1.0)
    assert latencies.loads() == (LoadClass(3, 1, Histogram.of([1.0]).p50),)
    assert latencies.histogram() == Histogram.of([5.0, 1.0])
    assert latencies.seconds() == 6.0


def test_running_invocations_count_as_busy_slots() -> None:
    ledger = ledger_of("a", "b")
    ledger.start(0.0)
    entry = ledger.start(1.0)
    assert evidence_at(ledger, 4.0).in_flight == (4.0 + 3.0) / 4.0
    ledger.complete(entry, ["b"], 4.0)
    assert evidence_at(ledger, 10.0).in_flight == (10.0 + 3.0) / 10.0


def test_a_handler_counts_as_a_busy_slot_and_not_as_latency() -> None:
    ledger = ledger_of("a")
    entry = ledger.start(0.0)
    ledger.fail(entry, ValueError(), 1.0)
    assert evidence_at(ledger, 3.0).in_flight == 1.0
    ledger.finish(entry, ["A"], 5.0)
    evidence = evidence_at(ledger, 10.0)
    assert (evidence.in_flight, evidence.latency) == (0.5, 1.0)


def test_a_full_buffer_starves_only_while_a_slot_is_free() -> None:
    ledger = ledger_of("a", "b")
    ledger.start(0.0)
    b = ledger.start(0.0)
    ledger.wait_for_room(0.0)  # both slots are busy
    ledger.complete(b, ["B"], 4.0)
    ledger.idle(4.0)
    ledger.flow.have_room(7.0)
    evidence = evidence_at(ledger, 10.0)
    assert (evidence.starved, evidence.source_wait) == (0.3, 0.3)


def test_the_time_after_the_last_start_does_not_count() -> None:
    ledger = ledger_of("a", "b")
    ledger.end_input(0.0)
    a, b = ledger.start(0.0), ledger.start(0.0)
    ledger.complete(a, ["A"], 2.0)
    ledger.idle(2.0)
    ledger.complete(b, ["B"], 50.0)
    ledger.idle(50.0)
    assert evidence_at(ledger, 50.0).in_flight == 2.0


def test_the_clocks_are_not_read_after_the_end() -> None:
    ledger = ledger_of()
    ledger.flow.end((8.0, 2.0))
    evidence = evidence_at(ledger, 100.0)
    assert (evidence.seconds, evidence.cpu) == (8.0, 0.25)
