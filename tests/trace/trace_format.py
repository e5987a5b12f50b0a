"""Holds a trace to Chrome's Trace Event Format, and to what this package promises beyond it."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import pairwise
from typing import Any

KEYS = {
    "M": {"ph", "name", "pid", "tid", "ts", "args"},
    "X": {"ph", "cat", "name", "pid", "tid", "ts", "dur", "args"},
    "b": {"ph", "cat", "name", "id2", "pid", "tid", "ts", "args"},
    "e": {"ph", "cat", "name", "id2", "pid", "tid", "ts", "args"},
}
METADATA = {
    "process_name": ("name", str),
    "thread_name": ("name", str),
    "thread_sort_index": ("sort_index", int),
}


def check_format(trace: Any) -> None:
    assert json.loads(json.dumps(trace, allow_nan=False)) == trace
    assert set(trace) == {"traceEvents", "displayTimeUnit", "otherData"}
    assert trace["displayTimeUnit"] in {"ms", "ns"}
    events = trace["traceEvents"]
    for event in events:
        check_event(event)
    times = [event["ts"] for event in events if event["ph"] != "M"]
    assert times == sorted(times)
    check_names(events)
    check_nesting(events)
    check_asynchronous(events)


def check_event(event: dict[str, Any]) -> None:
    assert event.keys() == KEYS[event["ph"]]
    assert all(type(event[key]) is int and event[key] >= 0 for key in ("pid", "tid", "ts"))
    assert type(event.get("dur", 0)) is int
    assert event.get("dur", 0) >= 0
    assert all(isinstance(event.get(key, ""), str) for key in ("name", "cat"))
    assert event["name"]
    if event["ph"] == "M":
        argument, kind = METADATA[event["name"]]
        assert set(event["args"]) == {argument}
        assert type(event["args"][argument]) is kind


def check_names(events: list[dict[str, Any]]) -> None:
    """Every process and every track has one name, before its first event."""
    named: set[tuple[str, int, int]] = set()
    for event in events:
        process, track = ("process_name", event["pid"], 0), ("thread_name", event["pid"], event["tid"])
        if event["ph"] != "M":
            assert {process, track} <= named
        elif event["name"] in {"process_name", "thread_name"}:
            name = event["name"], event["pid"], event["tid"]
            assert name not in named
            named.add(name)


def is_part(span: dict[str, Any], record: dict[str, Any]) -> bool:
    """Whether the span belongs to this stay of its record in a slot."""
    is_inside = record["cat"] == "record" and record["ts"] <= span["ts"] <= end_of(span) <= end_of(record)
    return is_inside and sequences_of(span) <= sequences_of(record)


def sequences_of(span: dict[str, Any]) -> set[int]:
    """The records of a span on a slot."""
    return {record["sequence"] for record in span["args"].get("records", [span["args"]])}


def check_nesting(events: list[dict[str, Any]]) -> None:
    """Stays in a slot follow one another, and their parts follow one another inside them."""
    tracks: defaultdict[tuple[int, int], list[dict[str, Any]]] = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            tracks[event["pid"], event["tid"]].append(event)
    for (_, slot), spans in tracks.items():
        assert slot >= 1
        outer = [span for span in spans if span["cat"] == "record"]
        assert all(end_of(before) <= after["ts"] for before, after in pairwise(outer))
        for number, span in enumerate(spans):
            assert span["cat"] == "record" or any(is_part(span, record) for record in spans[:number])
        for record in outer:
            parts = [span for span in spans if span["cat"] != "record" and is_part(span, record)]
            assert all(end_of(before) <= after["ts"] for before, after in pairwise(parts))
        assert set().union(*map(sequences_of, spans)) == set().union(*map(sequences_of, outer))


def check_asynchronous(events: list[dict[str, Any]]) -> None:
    """Each beginning has one end, which is not before it."""
    begun: dict[tuple[int, str, str], int] = {}
    for event in events:
        key = event["pid"], event.get("cat", ""), event.get("id2", {}).get("local", "")
        if event["ph"] == "b":
            assert key not in begun
            begun[key] = event["ts"]
        elif event["ph"] == "e":
            assert begun.pop(key) <= event["ts"]
    assert begun == {}


def end_of(span: dict[str, Any]) -> int:
    return int(span["ts"] + span["dur"])


def spans_of(trace: Any, category: str) -> list[dict[str, Any]]:
    """The spans on slots of a category."""
    return [event for event in trace["traceEvents"] if event["ph"] == "X" and event["cat"] == category]


def seconds_of(trace: Any, category: str) -> float:
    """The total length of the asynchronous spans of a category that have ended."""
    unfinished = {
        event["id2"]["local"]
        for event in trace["traceEvents"]
        if event["ph"] == "b" and event["cat"] == category and "unfinished" in event["args"]
    }
    signs = {"b": -1, "e": 1}
    return sum(
        signs[event["ph"]] * event["ts"] / 1e6
        for event in trace["traceEvents"]
        if event["ph"] in signs and event["cat"] == category and event["id2"]["local"] not in unfinished
    )
