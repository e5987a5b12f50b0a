"""Pictures with rows of bars over time, in the look of the timelines."""

from __future__ import annotations

from collections.abc import Callable

from pictures.drawing import LEFT, Bar, Drawing, Panel, Row
from pictures.drawing import RIGHT as MARGIN
from pictures.figure import WIDTH, Figure, bar, cross, dot, line, text
from trio_asyncio_io._watch.events import Trace

__all__ = ["LEFT", "RIGHT", "Lanes", "by_slot", "row"]

RIGHT = WIDTH - MARGIN


class Lanes(Drawing):
    """A timeline to which more can be added below its rows: curves, boxes and notes."""

    def __init__(self, title: str, end: float) -> None:
        super().__init__(title, round(end * 1e6))

    def x(self, seconds: float) -> float:
        return self._x(round(seconds * 1e6))

    def behind(self, part: str) -> None:
        """Add something that the parts so far cover."""
        self.parts.insert(0, part)

    def draw_curves(
        self, name: str, curves: dict[str, list[tuple[float, int]]], height: float = 90, top: int = 0
    ) -> None:
        """Numbers over time, as steps. The keys are looks; each step has its instant in seconds and the new number.

        Args:
            top: The number at the upper edge; 0 for the largest one.
        """
        self.y += 30
        self.parts.append(text(14, self.y, name, "name"))
        self.y += 10
        upper = top or max(value for steps in curves.values() for _, value in steps)
        bottom, scale = self.y + height, height / upper

        def y(value: int) -> float:
            return bottom - value * scale

        for value in (0, upper):
            self.behind(line(LEFT, y(value), RIGHT, y(value), "grid"))
            self.parts.append(text(LEFT - 12, y(value) + 4, str(value), "soft", "end"))
        for look, steps in curves.items():
            points, before = [], 0
            for at, value in [*steps, (self._end / 1e6, steps[-1][1])]:
                points += [f"{self.x(at):.1f},{y(before):.1f}", f"{self.x(at):.1f},{y(value):.1f}"]
                before = value
            self.parts.append(f'<polyline class="curve-{look}" points="{" ".join(points)}"/>')
        self.y = bottom

    def add_dot(self, x: float, y: float) -> None:
        self.parts.append(dot(x, y))

    def draw_keys(self, keys: dict[str, str]) -> None:
        """The legend: look -> label, for looks of bars, curves and areas."""
        self.y += 10
        for number, (look, label) in enumerate(keys.items()):
            x, y = 14 + (number % 2) * 300, self.y + 22 * (number // 2) + 16
            if look in {"dot", "cross"}:
                sample = dot(12, 0) if look == "dot" else cross(12, 0)
            elif look.startswith(("curve-", "limit")):
                sample = f'<polyline class="{look}" points="0,0 24,0"/>'
            else:
                sample = bar(look, 0, 24, 0)
            self.parts.append(f'<g transform="translate({x:g} {y:g})">{sample}{text(32, 4, label, "soft")}</g>')
        self.y += 22 * ((len(keys) + 1) // 2) + 6

    def svg(self, description: str, name: str) -> str:
        figure = Figure("", description, name)
        figure._title, figure.parts, figure.y = self._title, self.parts, self.y
        return figure.svg()


def row(label: str, bars: list[tuple[str, float, float]], received: float | None = None) -> Row:
    """A row of bars: look, start and end in seconds."""
    pieces = [Bar(look, round(start * 1e6), round(end * 1e6)) for look, start, end in bars]
    return Row(0, label, "a row", pieces, None if received is None else round(received * 1e6))


def by_slot(name: str, trace: Trace, slots: int, end: float, look: Callable[[str], str] = lambda _: "run") -> Panel:
    """A row for each slot: the invocations in it, and the idle times between them."""
    rows = []
    for slot in range(1, slots + 1):
        spans = [each for each in trace["traceEvents"] if each.get("cat") == "record" and each["tid"] == slot]
        bars, free = [], 0.0
        for span in spans:
            start, stop = span["ts"] / 1e6, (span["ts"] + span["dur"]) / 1e6
            if start > free:
                bars.append(("idle", free, start))
            bars.append((look(span["name"]), start, stop))
            free = stop
        if free < end:
            bars.append(("idle", free, end))
        rows.append(row(f"slot {slot}", bars))
    return Panel(name, rows, [])
