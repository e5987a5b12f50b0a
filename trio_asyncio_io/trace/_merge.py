"""Many traces as one: a process for each operator, at its place in time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ._events import Event
from ._file import FORMAT, WRITER, Trace, TraceError

__all__ = ["merge"]


def merge(traces: Iterable[Trace]) -> Trace:
    """One trace of many: those of the tasks of a Spark job, or of several runs to compare.

    Args:
        traces: At least one. Traces of Spark tasks contain the time at which they began, so they are placed in time.
            Others keep their order, and all start at 0.

    Raises:
        TraceError: There is no trace, or only some of the traces contain the time at which they began.
    """
    several = list(traces)
    if not several:
        raise TraceError("there is no trace to merge")
    began = [trace["otherData"]["began"] for trace in several if "began" in trace["otherData"]]
    if began and len(began) < len(several):
        raise TraceError(
            f"{len(several) - len(began)} of {len(several)} traces do not contain the time at which they began: "
            "merge traces of Spark tasks, or traces of other runs, but not both"
        )
    zero = min(began, default=0.0)
    several.sort(key=lambda trace: trace["otherData"].get("began", 0.0))  # stable
    names, events, processes = list[Event](), list[Event](), 0
    for trace in several:
        shift = round((trace["otherData"].get("began", 0.0) - zero) * 1e6)
        last = processes
        for event in _moved(trace, processes, shift):
            (names if event["ph"] == "M" else events).append(event)
            last = max(last, event["pid"])
        processes = last
    events.sort(key=lambda event: event["ts"])
    return {"traceEvents": [*names, *events], "displayTimeUnit": "ms", "otherData": _about(several, zero)}


def _moved(trace: Trace, processes: int, shift: int) -> Iterator[Event]:
    """The events of a trace, with their processes after those that are there already."""
    for event in trace["traceEvents"]:
        process = event["pid"] + processes
        moved = {**event, "pid": process}
        if event["ph"] == "M":
            if event["name"] == "process_sort_index":
                moved["args"] = {"sort_index": process}
        else:
            moved["ts"] += shift
        yield moved


def _about(traces: list[Trace], zero: float) -> dict[str, Any]:
    abouts = [trace["otherData"] for trace in traces]
    about: dict[str, Any] = {"writer": WRITER, "format": FORMAT}
    for key in ("records", "records_left_out", "watermarks", "watermarks_left_out"):
        about[key] = sum(each.get(key, 0) for each in abouts)
    if zero:
        about["began"] = zero
    return about
