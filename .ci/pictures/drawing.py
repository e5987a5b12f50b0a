"""The timeline: a trace as an SVG drawing, with a row for each record."""

from __future__ import annotations

import textwrap
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from pictures.figure import LINE, WIDTH, bar, cross, dot, group, line, text
from pictures.style import TIMELINE
from trio_asyncio_io._values.describe import duration, plural
from trio_asyncio_io._watch.charts import document
from trio_asyncio_io._watch.events import WATERMARK, Event, Trace

LEFT, RIGHT, ROW = 124, 16, 26
MAX_LABEL = 11

# With their microseconds
UNITS = (("s", 1_000_000), ("ms", 1_000), ("µs", 1))

LEGEND = {
    "run": "call, in a slot",
    "failed": "failed call",
    "late": "call that timed out",
    "cancelled": "cancelled call",
    "backoff": "backoff, without a slot",
    "handler": "handler, in the slot",
    "key": "waits for its key",
    "slot": "waits for a slot",
    "gate": "waits for a gate",
    "order": "waits for the output order",
    "consumer": "waits for the consumer",
}


def timeline(*traces: Trace, title: str) -> str:
    """Traces as an SVG document: a panel for each operator, a row for each record, time from left to right.

    The same traces always give the same document. Its texts are text, and it has a title and a description for screen
    readers.
    """
    panels = panels_of(*traces)
    end = max(_end_of(panel) for panel in panels)
    drawing = Drawing(title, end)
    for panel in panels:
        drawing.draw_panel(panel)
    drawing.draw_axis()
    drawing.draw_legend({each.look for panel in panels for row in panel.rows for each in row.bars}, panels)
    description, body = " ".join(_sentences(panels, end)), "\n".join(drawing.parts)
    size = WIDTH, round(drawing.y)
    return document("timeline", *size, title=title, description=description, style=TIMELINE, body=body)


class Drawing:
    """Collects the parts of the drawing, from top to bottom.

    Attributes:
        y: The lower edge so far.
    """

    def __init__(self, title: str, end: int) -> None:
        self._title = title
        self._end = max(end, 1)
        lines = textwrap.wrap(title, LINE)
        self.parts = [text(14, 26 + 22 * number, part, "title") for number, part in enumerate(lines)]
        self.y = self._top = 4.0 + 22 * len(lines)

    def draw_panel(self, panel: Panel) -> None:
        if panel.name != self._title:
            self.parts.append(text(14, self.y + 30, panel.name, "name"))
            self.y += 26
        top = self.y + 14
        self.y = top + ROW * len(panel.rows)
        self.parts += [self._row(row, top + ROW * number + ROW / 2) for number, row in enumerate(panel.rows)]
        if panel.walls:
            self.y += 16
            self._draw_walls(panel, top)

    def draw_axis(self) -> None:
        step, unit, scale = _ticks(self._end)
        grid = []
        for tick in range(0, self._end + 1, step):
            grid.append(line(self._x(tick), self._top + 12, self._x(tick), self.y + 4, "grid"))
            self.parts.append(text(self._x(tick), self.y + 20, f"{tick / scale:g}", "soft", "middle"))
        self.parts = grid + self.parts
        self.parts.append(text(LEFT - 14, self.y + 20, unit, "soft", "end"))
        self.y += 24

    def draw_legend(self, looks: set[str], panels: list[Panel]) -> None:
        entries = [(bar(look, 0, 24, 0), label) for look, label in LEGEND.items() if look in looks]
        if any(row.emitted is not None for panel in panels for row in panel.rows):
            entries.append((dot(12, 0), "received by the consumer"))
        if any(panel.walls for panel in panels):
            entries.append((line(12, -9, 12, 9, "wall"), "watermark, received"))
        self.y += 8
        for number, (sample, label) in enumerate(entries):
            x, y = 14 + (number % 2) * (WIDTH - 28) / 2, self.y + 22 * (number // 2) + 16
            self.parts.append(f'<g transform="translate({x:g} {y:g})">{sample}{text(32, 4, label, "soft")}</g>')
        self.y += 22 * ((len(entries) + 1) // 2) + 14

    def _row(self, row: Row, y: float) -> str:
        label = row.label if len(row.label) <= MAX_LABEL else f"{row.label[: MAX_LABEL - 1]}…"
        parts = [text(LEFT - 12, y + 4, label, "label", "end")]
        parts += [bar(each.look, self._x(each.start), self._x(each.end), y) for each in row.bars]
        parts += [cross(self._x(each.end), y) for each in row.bars if each.look == "cancelled"]
        if row.emitted is not None:
            parts.append(dot(self._x(row.emitted), y))
        return group(f"{row.label}: {row.description}", parts, "row")

    def _draw_walls(self, panel: Panel, top: float) -> None:
        """Draw the watermarks, and the names of those that have room for one."""
        free = 0.0
        for at, name in panel.walls:
            x = self._x(at)
            self.parts.append(group(name, [line(x, top, x, self.y - 12, "wall")], "watermark"))
            if x >= free:
                is_late = x > WIDTH - 110
                self.parts.append(text(x, self.y, name, "wall-name", "end" if is_late else "middle"))
                free = x + 10 * len(name) + 10

    def _x(self, instant: int) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * instant / self._end


def _sentences(panels: list[Panel], end: int) -> Iterator[str]:
    """The drawing in words."""
    yield f"A timeline of {duration(end / 1e6)}."
    for panel in panels:
        rows = "; ".join(f"{row.label} {row.description}" for row in panel.rows[:10])
        yield f"{panel.name}: {plural(len(panel.rows), 'record')}. {rows}."


def _end_of(panel: Panel) -> int:
    ends = [each.end for row in panel.rows for each in row.bars]
    return max([*ends, *(at for at, _ in panel.walls)], default=0)


def _ticks(end: int) -> tuple[int, str, int]:
    """The distance of two ticks in microseconds, their unit, and the microseconds in a unit: at most ten ticks."""
    steps = (digit * 10**zeros for zeros in count() for digit in (1, 2, 5))
    step = next(step for step in steps if end <= 10 * step)
    unit, scale = next((unit, scale) for unit, scale in UNITS if end >= scale)
    return step, unit, scale


# The rows of a drawing: instants are microseconds

# The look of a bar by the event's category and outcome
LOOKS = {
    "wait for its key": "key",
    "wait for a slot": "slot",
    "wait for a gate": "gate",
    "attempt": "run",
    "failed": "failed",
    "timed out": "late",
    "cancelled": "cancelled",
    "backoff": "backoff",
    "handler": "handler",
    "wait for the output order": "order",
    "wait for the consumer": "consumer",
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
        rows: Its records, by sequence.
        walls: The instant and the label of each watermark that was received.
    """

    name: str
    rows: list[Row]
    walls: list[tuple[int, str]]


def panels_of(*traces: Trace) -> list[Panel]:
    """A panel for each trace of an operator, one below the other."""
    return [_panel(trace["traceEvents"]) for trace in traces]


def _panel(events: list[Event]) -> Panel:
    names = [event["args"].get("name") for event in events if event["name"] == "process_name"]
    rows: dict[int, Row] = {}
    for event in events:
        if event["ph"] in "Xb" and event["cat"] != WATERMARK:
            for arguments in event["args"].get("records", [event["args"]]):  # of a group, each of its records
                _add(arguments, event, rows)
    for begin, end in _waits(events, LOOKS):
        rows[begin["args"]["sequence"]].bars.append(Bar(LOOKS[begin["cat"]], begin["ts"], end))
    spans = _waits(events, {WATERMARK})
    walls = [(end, begin["args"]["label"]) for begin, end in spans if "unfinished" not in begin["args"]]
    ordered = [rows[sequence] for sequence in sorted(rows)]
    for row in ordered:
        row.bars.sort(key=lambda bar: bar.start)
        if row.emitted is not None:  # received at the end of its last wait
            row.emitted = max([row.emitted, *(bar.end for bar in row.bars)])
    return Panel(str(names[0]) if names else "operator", ordered, walls)


def _add(arguments: dict[str, Any], event: Event, rows: dict[int, Row]) -> None:
    """Add a span to the row of the record with these arguments."""
    sequence, category = arguments["sequence"], event["cat"]
    label = str(arguments.get("label", event["name"]))
    row = rows.setdefault(sequence, Row(sequence, label))
    if category == "record":
        row.label = label
        row.description = _in_words(arguments, event)
        row.emitted = event["ts"] + event["dur"] if arguments.get("outputs") else None
    elif event["ph"] == "X" and category in LOOKS:
        look = LOOKS[arguments.get("outcome", "")] if arguments.get("outcome") in LOOKS else LOOKS[category]
        row.bars.append(Bar(look, event["ts"], event["ts"] + event["dur"]))


def _in_words(arguments: dict[str, Any], event: Event) -> str:
    calls = "1 call" if arguments.get("attempts") == 1 else f"{arguments.get('attempts')} calls"
    return f"{arguments.get('outcome')} after {calls} in slot {event['tid']}, {duration(event['dur'] / 1e6)}"


def _waits(events: Iterable[Event], categories: Container[str]) -> list[tuple[Event, int]]:
    """The spans of asynchronous events of these categories: the beginning, and the instant of the end."""
    begun: dict[tuple[str, str], Event] = {}
    found: list[tuple[Event, int]] = []
    for event in events:
        if event["ph"] not in "be" or event["cat"] not in categories:
            continue
        key = event["cat"], event["id2"]["local"]
        if event["ph"] == "b":
            begun[key] = event
        elif key in begun:
            found.append((begun.pop(key), event["ts"]))
    return found
