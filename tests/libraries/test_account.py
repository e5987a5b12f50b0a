"""One account of a run: statistics, totals, verdict, trace, report, summary and OpenTelemetry agree on random runs."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from tests.libraries.telemetry import Backend, assert_nothing_left
from tests.observing import Several
from tests.properties.runs import on_virtual_time
from tests.properties.test_comparison import scenario_of, source_of
from trio_asyncio_io import AsyncWaitOperator, Statistics, Totals, Verdict
from trio_asyncio_io.gates import CircuitBreaker, PerKey, RateLimit
from trio_asyncio_io.progress import summary
from trio_asyncio_io.report import Report, report
from trio_asyncio_io.testing import Recorder, Scripted
from trio_asyncio_io.trace import TraceRecorder

OUTCOMES = {"completed": "completed", "failed": "failed", "timed out": "timed_out", "cancelled": "cancelled"}


@dataclass
class Views:
    """The views of one run, and the calls that the service has counted: all, those that raised, and those cut short."""

    statistics: Statistics
    totals: Totals
    verdict: Verdict
    trace: Any
    report: Report
    telemetry: Backend
    calls: int
    raised: int
    cut: int
    is_cut_off: bool


def gates_of(random: Random) -> list[Any]:
    gates: list[Any] = [
        RateLimit(random.choice([0.7, 3.0])),
        PerKey(RateLimit(0.9), key=lambda value: value[0]),
        CircuitBreaker("fail", share=0.3, calls=3, window=5.0),
    ]
    return [gate for gate in gates if random.random() < 0.4]


def views_of(seed: int) -> Views:
    values, steps, options = scenario_of(seed)
    random = Random(seed + 1)
    pause, instant = random.choice([0.0, 0.0, 0.4]), random.choice([inf, inf, 6.0])
    service: Recorder[Any, Any] = Recorder(Scripted(steps))
    telemetry = Backend()

    async def body(page: Report) -> Views:
        recorder = TraceRecorder()
        observer = Several(recorder, page, telemetry.observer())
        operator = AsyncWaitOperator(
            service, source=source_of(values, seed), gate=gates_of(random), observer=observer, **options
        )
        with trio.move_on_after(instant) as scope:
            async with operator:
                async for _ in operator.output:
                    await trio.sleep(pause)
        return Views(
            operator.statistics(),
            operator.totals(),
            operator.explain(),
            recorder.trace(),
            page,
            telemetry,
            len(service.calls),
            sum(call.error is not None for call in service.calls),
            sum(call.cancelled for call in service.calls),
            scope.cancelled_caught,
        )

    with TemporaryDirectory() as folder, report(Path(folder) / "run.html") as page:
        found: Views = on_virtual_time(lambda: body(page))
    return found


SEEDS = st.integers(0, 1_000_000)


@given(SEEDS)
def test_all_views_count_the_same_calls_and_records(seed: int) -> None:
    views = views_of(seed)
    numbers, totals = views.statistics, views.totals
    made = numbers.completed + numbers.failed + numbers.timed_out - numbers.refused
    # The trace
    records = [event for event in events_of(views.trace, "record") if event["args"]["outcome"] in OUTCOMES]
    outcomes = Counter(OUTCOMES[event["args"]["outcome"]] for event in records)
    assert outcomes == +Counter({name: getattr(numbers, name) for name in OUTCOMES.values()})
    assert len(events_of(views.trace, "attempt")) == views.calls
    assert sum(event["args"]["attempts"] for event in records) == views.calls
    # Statistics, totals and the verdict
    assert made + numbers.cancelled + numbers.retried == views.calls
    assert (totals.records, totals.retried, totals.refused) == (made, numbers.retried, numbers.refused)
    assert totals.without_result == numbers.failed + numbers.timed_out - numbers.refused
    assert numbers.latency.count == made
    if views.verdict.limit != "unknown" and not numbers.cancelled:
        assert views.verdict.sentences[0].startswith(f"{views.calls:,} call")
    # The report
    run = views.report._run
    assert run.statistics == numbers
    assert run.verdicts == [views.verdict]
    assert sum(run.series.change) == 0
    assert sum(run.series.received) == numbers.emitted
    failed = sum(found.attempts for found in run.failures.values())
    assert sum(run.series.failed) == failed
    # A record whose next attempt could not begin before the deadline has timed out without another call
    assert views.raised <= failed <= views.raised + numbers.timed_out
    if not numbers.cancelled:  # otherwise the end of the operator has also cut calls
        assert failed == views.raised + views.cut
    assert sum(found.records for found in run.failures.values()) == numbers.failed + numbers.timed_out
    assert max(run.series.running(), default=0) <= numbers.peak_running
    # OpenTelemetry and the summary
    telemetry = views.telemetry
    assert sum(telemetry.counted("attempts").values()) == views.calls
    assert telemetry.counted("invocations") == outcomes
    assert sum(telemetry.counted("invocation.duration").values()) == made + numbers.cancelled
    assert len(telemetry.spans()) == len(records)
    assert_nothing_left(telemetry)
    telemetry.shutdown()
    line = summary(numbers, totals.seconds)
    assert f"{numbers.retried:,} retried, {numbers.failed:,} failed, {numbers.timed_out:,} timed out" in line


@given(SEEDS)
def test_all_views_divide_the_same_time(seed: int) -> None:
    views = views_of(seed)
    numbers, totals, trace = views.statistics, views.totals, views.trace
    if not views.is_cut_off:  # otherwise the trace also has waits that have not ended
        assert seconds_of(trace, "wait for a slot") == pytest.approx(numbers.slot_wait_seconds, abs=1e-4)
        assert seconds_of(trace, "wait for a gate") == pytest.approx(numbers.gate_wait_seconds, abs=1e-4)
        assert seconds_of(trace, "wait for the output order") == pytest.approx(numbers.head_wait_seconds, abs=1e-4)
    lengths = lengths_of(trace)
    assert sum(lengths) == pytest.approx(numbers.latency_seconds, abs=1e-4)
    assert max(lengths, default=0.0) == pytest.approx(numbers.longest_seconds, abs=1e-5)
    slowest = [each.seconds for each in views.report._run.slowest]
    assert max(slowest, default=0.0) == numbers.longest_seconds
    assert sum(numbers.seconds_by_gate.values()) == pytest.approx(numbers.gate_wait_seconds)
    assert totals.call_seconds + totals.rested_seconds == pytest.approx(numbers.latency_seconds)


@given(SEEDS)
def test_the_pieces_of_a_record_leave_no_gap_and_do_not_overlap(seed: int) -> None:
    trace = views_of(seed).trace
    pieces: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    begun: dict[tuple[str, str], int] = {}
    for event in trace["traceEvents"]:
        key = event.get("cat", ""), event.get("id2", {}).get("local", "")
        if event["ph"] == "b":
            begun[key] = event["ts"]
        elif event["ph"] == "e":
            pieces[int(key[1], 16)].append((begun.pop(key), event["ts"]))
        elif event["ph"] == "X" and event["cat"] == "record":
            pieces[event["args"]["sequence"]].append((event["ts"], event["ts"] + event["dur"]))
    for parts in pieces.values():
        ends = sorted(parts)
        assert all(before[1] == after[0] for before, after in pairwise(ends)), ends


def events_of(trace: Any, category: str) -> list[Any]:
    return [event for event in trace["traceEvents"] if event["ph"] == "X" and event["cat"] == category]


def seconds_of(trace: Any, category: str) -> float:
    signs = {"b": -1, "e": 1}
    events = [event for event in trace["traceEvents"] if event["ph"] in signs and event["cat"] == category]
    return sum(signs[event["ph"]] * event["ts"] for event in events) / 1e6


def lengths_of(trace: Any) -> list[float]:
    """The durations of the invocations that ended: their attempts and backoffs."""
    ended = {
        event["args"]["sequence"]
        for event in events_of(trace, "record")
        if event["args"]["outcome"] in {"completed", "failed", "timed out"}
    }
    lengths: defaultdict[int, float] = defaultdict(float)
    for event in events_of(trace, "attempt"):
        lengths[event["args"]["sequence"]] += event["dur"] / 1e6
    signs = {"b": -1, "e": 1}
    for event in trace["traceEvents"]:
        if event["ph"] in signs and event["cat"] == "backoff":
            lengths[int(event["id2"]["local"], 16)] += signs[event["ph"]] * event["ts"] / 1e6
    return [seconds for sequence, seconds in lengths.items() if sequence in ended]
