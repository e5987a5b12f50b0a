"""Merged traces: a process for each operator, at its place in time."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.trace.trace_format import check_format, spans_of
from trio_asyncio_io import Watermark, unordered_wait
from trio_asyncio_io.testing import Scripted, Step
from trio_asyncio_io.trace import TraceError, TraceRecorder, merge


def trace_of(name: str, seconds: float = 1.0, began: float | None = None, **options: Any) -> Any:
    recorder = TraceRecorder(name=name, **options)

    async def main() -> None:
        source = ["a", Watermark(1), "b"]
        function = Scripted({"a": Step(2 * seconds)}, default=Step(seconds))
        async with unordered_wait(source, function, timeout=99.0, observer=recorder) as results:
            async for _ in results:
                pass

    trio.run(main, clock=MockClock(autojump_threshold=0))
    trace = recorder.trace()
    if began is not None:
        trace["otherData"]["began"] = began
    return trace


def processes_of(trace: Any) -> dict[int, str]:
    return {event["pid"]: event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "process_name"}


def test_runs_are_side_by_side_from_zero() -> None:
    merged = merge([trace_of("first"), trace_of("second")])
    check_format(merged)
    assert processes_of(merged) == {1: "first", 2: "second"}
    assert {(span["pid"], span["ts"]) for span in spans_of(merged, "record")} == {(1, 0), (2, 0)}


def test_tasks_are_placed_in_time_whatever_their_order() -> None:
    merged = merge([trace_of("late", began=1000.5), trace_of("early", began=1000.0)])
    check_format(merged)
    assert processes_of(merged) == {1: "early", 2: "late"}
    assert [(span["pid"], span["ts"]) for span in spans_of(merged, "record")] == [
        (1, 0),
        (1, 0),
        (2, 500_000),
        (2, 500_000),
    ]
    assert merged["otherData"]["began"] == 1000.0


def test_merged_traces_can_be_merged_again() -> None:
    inner = merge([trace_of("a", began=7.0), trace_of("b", began=8.0)])
    merged = merge([inner, trace_of("c", began=6.0)])
    check_format(merged)
    assert processes_of(merged) == {1: "c", 2: "a", 3: "b"}
    assert [span["ts"] for span in spans_of(merged, "record")] == [0, 0, 1_000_000, 1_000_000, 2_000_000, 2_000_000]


def test_the_numbers_of_records_are_added() -> None:
    about = merge([trace_of("a", max_records=1), trace_of("b")])["otherData"]
    assert (about["records"], about["records_left_out"]) == (3, 1)
    assert (about["watermarks"], about["watermarks_left_out"]) == (2, 0)


def test_the_merged_traces_do_not_change() -> None:
    trace = trace_of("a", began=9.0)
    merge([trace_of("b", began=1.0), trace])
    assert trace == trace_of("a", began=9.0)


def test_nothing_to_merge_is_refused() -> None:
    with pytest.raises(TraceError, match="there is no trace to merge"):
        merge([])


def test_tasks_and_other_runs_are_not_mixed() -> None:
    with pytest.raises(TraceError, match="1 of 2 traces do not contain the time at which they began"):
        merge([trace_of("a"), trace_of("b", began=1.0)])
