"""Trace events as the rows of a drawing. Instants are microseconds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ._events import BACKOFF, FOR_CONSUMER, FOR_GATE, FOR_ORDER, FOR_SLOT, WATERMARK, Event
from ._file import Trace

__all__ = ["Bar", "Panel", "Row", "panels_of"]

# The look of a bar by the event's category and outcome
LOOKS = {
    FOR_SLOT: "slot",
    FOR_GATE: "gate",
    "attempt": "run",
    "failed": "failed",
    "timed out": "late",
    "cancelled": "cancelled",
    BACKOFF: "backoff",
    "handler": "handler",
    FOR_ORDER: "order",
    FOR_CONSUMER: "consumer",
}


@dataclass(frozen=True, slots=True)
class Bar:
    """A stretch of a row. `look` is one of the values of `LOOKS`."""

    look: str
    start: int
    end: int


@dataclass(slots=True)
class Row:
    """One record.

    Attributes:
        description: A sentence with the numbers of the record.
        emitted: The instant at which the consumer received it, or None.
    """

    sequence: int
    label: str
    description: str = "not started"
    bars: list[Bar] = field(default_factory=list)
    emitted: int | None = None


@dataclass(slots=True)
class Panel:
    """One operator.

    Attributes:
        rows: Its first records, by sequence.
        more: The number of records in the trace that have no row.
        walls: The instant and the label of each watermark that was received.
    """

    name: str
    rows: list[Row]
    more: int
    walls: list[tuple[int, str]]


def panels_of(trace: Trace, max_rows: int) -> list[Panel]:
    """A panel for each operator in the trace, with at most `max_rows` rows each."""
    by_process: dict[int, list[Event]] = {}
    for event in trace["traceEvents"]:
        by_process.setdefault(event["pid"], []).append(event)
    return [_panel(events, max_rows) for _, events in sorted(by_process.items())]


def _panel(events: list[Event], max_rows: int) -> Panel:
    names = [event["args"].get("name") for event in events if event["name"] == "process_name"]
    rows: dict[int, Row] = {}
    for event in events:
        if event["ph"] in "Xb" and event["cat"] != WATERMARK:
            _add(event, rows)
    for begin, end in _waits(events):
        rows[begin["args"]["sequence"]].bars.append(Bar(LOOKS[begin["cat"]], begin["ts"], end))
    walls = [(each["ts"], each["name"]) for each in events if each["ph"] == "i" and each["cat"] == WATERMARK]
    ordered = [rows[sequence] for sequence in sorted(rows)]
    shown = ordered[:max_rows]
    for row in shown:
        row.bars.sort(key=lambda bar: bar.start)
        if row.emitted is not None:  # received at the end of its last wait
            row.emitted = max(row.emitted, *(bar.end for bar in row.bars))
    return Panel(str(names[0]) if names else "operator", shown, len(ordered) - len(shown), walls)


def _add(event: Event, rows: dict[int, Row]) -> None:
    arguments: dict[str, Any] = event["args"]
    sequence, category = arguments["sequence"], event["cat"]
    row = rows.setdefault(sequence, Row(sequence, str(arguments.get("label", event["name"]))))
    if category == "record":
        row.label = event["name"]
        row.description = _description(event)
        row.emitted = event["ts"] + event["dur"] if arguments.get("outputs") else None
    elif event["ph"] == "X" and category in LOOKS:
        look = LOOKS[arguments.get("outcome", "")] if arguments.get("outcome") in LOOKS else LOOKS[category]
        row.bars.append(Bar(look, event["ts"], event["ts"] + event["dur"]))


def _description(event: Event) -> str:
    arguments = event["args"]
    calls = "1 call" if arguments.get("attempts") == 1 else f"{arguments.get('attempts')} calls"
    return f"{arguments.get('outcome')} after {calls} in slot {event['tid']}, {event['dur'] / 1e6:g} s"


def _waits(events: Iterable[Event]) -> list[tuple[Event, int]]:
    """The spans of asynchronous events that belong to a record: the beginning, and the instant of the end."""
    begun: dict[tuple[str, str], Event] = {}
    found: list[tuple[Event, int]] = []
    for event in events:
        if event["ph"] not in "be" or event["cat"] not in LOOKS:
            continue
        key = event["cat"], event["id2"]["local"]
        if event["ph"] == "b":
            begun[key] = event
        elif key in begun:
            found.append((begun.pop(key), event["ts"]))
    return found
