"""The ledger: both limits, the snapshot and the statistics, with instants as plain numbers."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from trio_asyncio_io import Histogram, Snapshot, SnapshotElement, StreamRecord, Watermark
from trio_asyncio_io._core.elements import inserted_watermark
from trio_asyncio_io._core.ledger import Ledger
from trio_asyncio_io._core.queue import CompletionOrder, InputOrder, KeyOrder


def ordered(bound: int = 3, *restored: SnapshotElement) -> Ledger:
    return Ledger(InputOrder(), bound, Snapshot(restored, taken=len(restored)))


def accept(ledger: Ledger, *elements: Any, now: float = 0.0) -> list[Any]:
    return [ledger.accept(element, now) for element in elements]


def finish(ledger: Ledger, results: list[Any], now: float = 0.0) -> Any:
    """Start the next job and finish it at the same instant."""
    entry = ledger.start(now)
    ledger.finish(entry, results, now)
    return entry


def snapshot_of(ledger: Ledger) -> list[tuple[int, Any, Any]]:
    return [(each.sequence, each.element, each.results) for each in ledger.snapshot().elements]


def test_it_has_no_more_attributes_than_python_reads_quickly() -> None:
    assert len(vars(ordered())) <= 29


def receive_all(ledger: Ledger) -> list[bool]:
    """Receive the completed entries; return for each whether a feeder that waits for room may continue then."""
    may_refill = []
    ledger.wait_for_room(0.0)
    ledger.poll(0.0, 99)
    while ledger.leaving:
        ledger.receive()
        may_refill.append(ledger.may_refill())
    return may_refill


def test_a_burst_of_room_is_a_sixteenth_of_the_buffer() -> None:
    ledger = ordered(48)
    ledger.refill_in_bursts()
    accept(ledger, *range(48))
    for _ in range(5):
        finish(ledger, ["result"])
    assert receive_all(ledger) == [False, False, True, True, True]


def test_any_room_is_enough_if_no_job_waits() -> None:
    ledger = ordered(48)
    ledger.refill_in_bursts()
    accept(ledger, "a", *[Watermark(number) for number in range(47)])
    accept(ledger, *range(47))
    for _ in range(48):
        finish(ledger, ["result"])
    assert not ledger.jobs
    assert receive_all(ledger) == [True] * 95


def test_a_feeder_that_waits_with_a_watermark_continues_when_one_has_been_received() -> None:
    ledger = ordered(2)
    accept(ledger, Watermark(1), Watermark(2), "a", "b")
    ledger.wait_for_room(0.0)
    assert not ledger.may_refill()
    assert receive_all(ledger) == [True, True]


def test_any_room_is_enough_without_bursts() -> None:
    ledger = ordered(48)
    accept(ledger, *range(48))
    finish(ledger, ["result"])
    assert receive_all(ledger) == [True]


def test_as_many_watermarks_as_records_may_be_buffered() -> None:
    ledger = ordered(2)
    accept(ledger, "a", "b")
    assert None not in accept(ledger, Watermark(1), Watermark(2))
    assert accept(ledger, Watermark(3)) == [None]
    for _ in range(2):
        finish(ledger, ["x"])
    ledger.poll(0.0, 3)
    for _ in range(3):
        ledger.receive()
    assert accept(ledger, Watermark(3)) != [None]


def test_nothing_becomes_a_job_after_close() -> None:
    ledger = Ledger(KeyOrder(lambda value: value[0]), 8)
    accept(ledger, "a1", "a2", "b1")
    entry = ledger.start(0.0)
    ledger.stop_starting()
    assert not ledger.jobs
    accept(ledger, "c1")
    ledger.finish(entry, [], 0.0)
    assert not ledger.jobs
    assert [value for _, value, _ in snapshot_of(ledger)] == ["a1", "a2", "b1", "c1"]


def test_a_snapshot_has_all_elements_from_the_backlog_to_those_that_leave_in_arrival_order() -> None:
    ledger = Ledger(CompletionOrder(), 4)
    accept(ledger, "a", "b", Watermark(1), "c", "d")
    a, b, c = (ledger.start(0.0) for _ in range(3))
    ledger.finish(c, ["C"], 0.0)
    ledger.finish(b, ["B"], 0.0)
    ledger.poll(0.0, 1)
    ledger.put_back("in hand")
    assert snapshot_of(ledger) == [
        (0, "a", None),
        (1, "b", ["B"]),
        (2, Watermark(1), None),
        (3, "c", ["C"]),
        (4, "d", None),
        (5, "in hand", None),
    ]
    ledger.finish(a, ["A"], 0.0)
    assert snapshot_of(ledger)[0] == (0, "a", ["A"])


def test_a_snapshot_is_a_copy() -> None:
    ledger = ordered(3, SnapshotElement(0, "a", ["A"]))
    taken = ledger.snapshot()
    ledger.backlog[0][1].append("more")
    assert taken.elements == (SnapshotElement(0, "a", ["A"]),)


def test_an_abandoned_record_is_unfinished_in_the_snapshot() -> None:
    ledger = ordered()
    accept(ledger, "a")
    ledger.abandon(ledger.start(0.0))
    assert snapshot_of(ledger) == [(0, "a", None)]
    assert ledger.statistics().running == 0


def test_restored_elements_come_first_and_get_new_sequence_numbers() -> None:
    ledger = ordered(3, SnapshotElement(17, "a", ["A"]), SnapshotElement(40, "b"))
    assert snapshot_of(ledger) == [(0, "a", ["A"]), (1, "b", None)]
    assert not ledger.is_drained()


def test_inserted_watermarks_do_not_count_as_taken() -> None:
    ledger = ordered(3)
    accept(ledger, "a", inserted_watermark(1), Watermark(2))
    assert ledger.snapshot().taken == 2
    ledger.put_back(inserted_watermark(3))
    assert ledger.snapshot().taken == 2


@pytest.mark.parametrize("through", [lambda snapshot: snapshot, lambda snapshot: pickle.loads(pickle.dumps(snapshot))])
def test_restored_watermarks_do_not_change_taken(through: Any) -> None:
    ledger = ordered(3)
    accept(ledger, "a", inserted_watermark(1), Watermark(2))
    restored = Ledger(InputOrder(), 3, through(ledger.snapshot()))
    while restored.backlog:
        assert restored.snapshot().taken == 2
        restored.accept_held(0.0)
    accept(restored, inserted_watermark(3), "b")
    assert restored.snapshot().taken == 3


def test_the_statistics_follow_each_step() -> None:
    ledger = ordered()
    accept(ledger, "a", "b", "c", now=1.0)
    a, b = ledger.start(1.0), ledger.start(3.0)
    ledger.finish(b, ["B"], 4.0)
    ledger.finish(a, ["A"], 6.0)
    ledger.poll(6.5, 9)
    for _ in range(2):
        ledger.receive()
    statistics = ledger.statistics()
    assert (statistics.running, statistics.peak_running) == (0, 2)
    assert (statistics.buffered, statistics.peak_buffered) == (1, 3)
    assert statistics.emitted == 2
    assert statistics.slot_wait_seconds == 2.0  # b, from 1.0 to 3.0
    assert statistics.head_wait_seconds == 3.0  # a from 6.0 to 6.5, b from 4.0 to 6.5
    assert statistics.slot_wait == Histogram.of([0.0, 2.0])
    assert statistics.head_wait == Histogram.of([0.5, 2.5])


def test_latency_is_the_time_of_each_ended_invocation() -> None:
    ledger = ordered(5)
    accept(ledger, "a", "b", "c", "d", "e")
    a, b, c, d, _ = [ledger.start(1.0) for _ in range(5)]
    ledger.complete(a, ["A"], 2.0)
    b.attempts = 1
    ledger.fail(b, ValueError(), 3.0)
    ledger.time_out(c, 5.0)
    ledger.cancel(d, 9.0)
    ledger.finish(b, ["B"], 8.0)  # the time of a handler does not count
    assert ledger.statistics().latency == Histogram.of([1.0, 2.0, 4.0])
    assert ledger.statistics().longest_seconds == 4.0


def test_a_record_that_a_gate_refused_has_no_latency() -> None:
    ledger = ordered(2)
    accept(ledger, "a", "b")
    a, b = ledger.start(1.0), ledger.start(1.0)
    ledger.fail(a, ValueError(), 3.0)
    ledger.complete(b, ["B"], 2.0)
    numbers = ledger.statistics()
    assert (numbers.failed, numbers.refused, numbers.latency) == (1, 1, Histogram.of([1.0]))
    totals = ledger.totals(lambda: (9.0, 0.0))
    assert (totals.records, totals.without_result, totals.refused) == (1, 0, 1)


def consumer_share(ledger: Ledger, now: float) -> str:
    ledger.begin_run((0.0, 0.0))
    return "\n".join(ledger.verdict(lambda: (now, 0.0)).sentences)


def test_outputs_that_wait_for_the_consumer_make_it_the_limit() -> None:
    ledger = Ledger(InputOrder(), 3, capacity=1)  # so that two calls are enough to judge
    accept(ledger, "a", "b")
    for _ in range(2):
        ledger.complete(ledger.start(0.0), ["x"], 0.5)
    ledger.poll(0.5, 9)
    assert "Outputs waited for the consumer 95% of the time." in consumer_share(ledger, 10.0)
    ledger.receive()
    ledger.receive()
    ledger.consumer_has_caught_up(10.0)
    assert "Outputs waited for the consumer 90% of the time." in consumer_share(ledger, 10.5)
    assert "waited for the consumer" not in consumer_share(ledger, 20.0)


def test_outputs_do_not_wait_for_a_consumer_that_waits_for_them() -> None:
    ledger = Ledger(InputOrder(), 3, capacity=1)  # so that two calls are enough to judge
    accept(ledger, "a", "b")
    for _ in range(2):
        ledger.complete(ledger.start(0.0), ["x"], 0.5)
    ledger.poll(0.5, 9)
    ledger.receive()
    ledger.consumer_has_waited(10.0)  # it waited, and has not run before because the event loop was busy
    assert "waited for the consumer" not in consumer_share(ledger, 10.0)


def test_a_dead_letter_does_not_wait_for_the_consumer() -> None:
    ledger = ordered()
    accept(ledger, "a")
    entry = ledger.start(0.0)
    ledger.fail(entry, ValueError(), 0.5)
    ledger.dead_letter(entry, ValueError(), 0.5)
    ledger.finish(entry, [], 0.5)
    ledger.poll(0.5, 9)
    assert "waited for the consumer" not in consumer_share(ledger, 10.0)


def test_watermarks_do_not_count_in_the_statistics() -> None:
    ledger = ordered()
    accept(ledger, Watermark(1))
    ledger.poll(5.0, 9)
    assert ledger.receive() == Watermark(1)
    statistics = ledger.statistics()
    assert (statistics.emitted, statistics.peak_buffered, statistics.head_wait_seconds) == (0, 0, 0.0)


@pytest.mark.parametrize(
    ("element", "outputs"),
    [
        ("a", [1, 2]),
        (StreamRecord("a", 7), [StreamRecord(1, 7), StreamRecord(2, 7)]),
        (StreamRecord("a"), [StreamRecord(1), StreamRecord(2)]),
    ],
)
def test_outputs_have_the_timestamp_of_their_element(element: Any, outputs: list[Any]) -> None:
    ledger = ordered()
    accept(ledger, element)
    finish(ledger, [1, 2])
    ledger.poll(0.0, 9)
    assert [ledger.receive() for _ in outputs] == outputs
