"""A forecast as a table of text, as a drawing, and as HTML for a notebook."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from html import escape
from textwrap import wrap
from typing import NamedTuple

from .._values.describe import amount, duration, plural
from .._watch.charts import Plot
from .._watch.page import table
from .._watch.svg import document, style_sheet
from ._row import ForecastRow

__all__ = ["Shown", "drawing_of"]

WIDTH = 80

# An interval whose bounds differ by more than this factor has no number in the middle, if the limit is not known
WIDE = 2.0
# Numbers of a row. Those in `OPTIONAL` are left out if they are 0 in all rows
TIMES = ("p50", "p99")
OPTIONAL = ("weight", "refused", "retried", "timed_out", "failed")
UNKNOWN = "?"
MILLION, THOUSAND, LONG = 1e6, 1e3, 1e5


class Shown(NamedTuple):
    """What a forecast shows.

    Attributes:
        rows, elements, assumptions, is_known: As in `Forecast`.
        best: The best row, or None.
    """

    rows: Sequence[ForecastRow]
    elements: int
    best: ForecastRow | None
    assumptions: Sequence[str]
    is_known: bool

    def text(self) -> str:
        """The rows, the best one and the assumptions, at most 80 columns wide."""
        cells = self._cells()
        paragraphs = [*self._legend(cells), *(f"- {each}" for each in self.assumptions)]
        notes = (line for each in paragraphs for line in wrap(each, WIDTH, subsequent_indent="  "))
        return "\n".join([*_lines(cells), "", *notes])

    def html(self) -> str:
        """The display in a notebook."""
        head, *cells = self._cells()
        legend = "".join(f"<p>{escape(each)}</p>" for each in self._legend(cells))
        notes = "".join(f"<li>{escape(each)}</li>" for each in self.assumptions)
        drawing = drawing_of(self.rows, self.elements)
        return f"<div>{drawing}{table(head, cells)}{legend}<ul>{notes}</ul></div>"

    def _legend(self, cells: Sequence[Sequence[str]]) -> Iterator[str]:
        times = "p50 and p99: from a record's first call to its output."
        yield f"{plural(self.elements, 'element')}. Intervals of 90 %. {times}"
        if self.best is not None:
            yield f"> Take capacity={self.best.capacity}: the smallest tested one that is about as fast as any."
        if not all(row.is_tested for row in self.rows):
            yield "* The sample has not reached this load: a guess."
        if any(UNKNOWN in row for row in cells):
            yield f"{UNKNOWN} The sample cannot tell this number."

    def _cells(self) -> list[list[str]]:
        def cell(row: ForecastRow, name: str, unit: Callable[[float], str]) -> str:
            low, high = row.intervals[name]
            return unit(getattr(row, name)) if self.is_known or high <= WIDE * low else UNKNOWN

        rows = self.rows
        counts = ["calls", *(name for name in OPTIONAL if any(getattr(row, name) for row in rows))]
        heads = ["capacity", "time", "90 %", *TIMES, *(name.replace("_", " ") for name in counts)]
        cells = [heads]
        for row in rows:
            mark = "> " if row is self.best else "" if row.is_tested else "* "
            cells.append(
                [
                    f"{mark}{row.capacity}",
                    cell(row, "seconds", duration),
                    f"{duration(row.low)} to {duration(row.high)}",
                    *(cell(row, name, duration) for name in TIMES),
                    *(cell(row, name, _short) for name in counts),
                ]
            )
        return cells


def _lines(cells: list[list[str]]) -> list[str]:
    lines = [""]
    for droppable in (None, "p50", "p99", "90 %"):
        if droppable is not None and droppable in cells[0]:
            position = cells[0].index(droppable)
            cells = [[*row[:position], *row[position + 1 :]] for row in cells]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in cells]
        if len(lines[0]) <= WIDTH:
            break
    return lines


def _short(number: float) -> str:
    """A number with at most six characters or so."""
    if number >= LONG:
        scale, unit = (MILLION, "M") if number >= MILLION else (THOUSAND, "k")
        return f"{amount(float(f'{number / scale:.3g}'))}{unit}"
    return amount(float(f"{number:.5g}"))


# Drawing, in pixels

LEFT, RIGHT, PANEL = 70, 20, 224
BAR = 0.45
STYLE = style_sheet(
    ".forecast",
    """\
.forecast svg{overflow:visible}
.forecast text{font:13px system-ui,sans-serif;fill:var(--fg)}
.forecast .grid{stroke:var(--grid)}
.forecast .bar{fill:var(--run)}
.forecast .guess{fill:none;stroke:var(--run);stroke-dasharray:4 3}
.forecast .column{fill:transparent}
.forecast .interval{stroke:var(--fg);stroke-width:1.5}
""",
)


def drawing_of(rows: Sequence[ForecastRow], elements: int) -> str:
    """Two panels over the capacity: the time, and the weight or the calls. Bars of untested capacities are hollow."""
    width = max(480, LEFT + RIGHT + 90 * len(rows))
    cost = "weight" if any(row.weight for row in rows) else "calls"
    count = plural(elements, "element")
    body = "".join(
        f'<text x="{LEFT}" y="{top + 20}">{heading}</text>'
        f'<svg x="{LEFT}" y="{top + 8}" width="{width - LEFT - RIGHT}">{_panel(rows, name, heading)}</svg>'
        for name, heading, top in (
            ("seconds", f"{count}: time by capacity, with intervals of 90 %", 0),
            (cost, f"{cost.capitalize()} by capacity", PANEL),
        )
    )
    description = "; ".join(f"capacity {row.capacity}: {_described(row, 'seconds')}" for row in rows)
    title = f"Forecast for {count}"
    return document("forecast", width, 2 * PANEL, title=title, description=description, style=STYLE, body=body)


def _unit_of(name: str) -> Callable[[float], str]:
    return duration if name == "seconds" else _short


def _described(row: ForecastRow, name: str) -> str:
    unit, (low, high) = _unit_of(name), row.intervals[name]
    return f"{unit(getattr(row, name))}, from {unit(low)} to {unit(high)}"


def _panel(rows: Sequence[ForecastRow], name: str, title: str) -> str:
    plot = Plot(title)
    plot.add_levels(max(row.intervals[name][1] for row in rows), _unit_of(name))
    for position, row in enumerate(rows):
        middle, half = (position + 0.5) / len(rows), BAR / len(rows) / 2
        label, look = f"capacity {row.capacity}: {_described(row, name)}", "bar" if row.is_tested else "guess"
        plot.bar(middle - half, 2 * half, getattr(row, name), label, look)
        plot.interval(middle, *row.intervals[name])
        plot.tick(middle, str(row.capacity))
    return plot.svg()
