"""The ledger: both limits, the snapshot and the statistics, with instants as plain numbers."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from trio_asyncio_io import Histogram, Snapshot, SnapshotElement, Watermark
from trio_asyncio_io._core.elements import inserted_watermark
from trio_asyncio_io._core.ledger import Ledger
from trio_asyncio_io._core.queue import InputOrder


def ordered(bound: int = 3, *restored: SnapshotElement) -> Ledger:
    return Ledger(InputOrder(), bound, Snapshot(restored, taken=len(restored)))


def accept(ledger: Ledger, *elements: Any, now: float = 0.0) -> list[Any]:
    return [ledger.accept(element, now) for element in elements]


def finish(ledger: Ledger, results: list[Any], now: float = 0.0) -> Any:
    """Start the next job and finish it at the same instant."""
    entry = ledger.start(now)
    ledger.finish(entry, results, now)
    return entry


def test_it_has_no_more_attributes_than_python_reads_quickly() -> None:
    assert len(vars(ordered())) <= 29


def test_a_snapshot_is_a_copy() -> None:
    ledger = ordered(3, SnapshotElement(0, "a", ["A"]))
    taken = ledger.snapshot()
    ledger.backlog[0][1].append("more")
    assert taken.elements == (SnapshotElement(0, "a", ["A"]),)


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
