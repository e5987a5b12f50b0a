"""A forecast as a table of text, as a drawing, and as HTML for a notebook."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from textwrap import wrap

from .._values.describe import amount, duration, plural
from .._watch.charts import nice
from .._watch.svg import document, group, line, style_sheet, text
from ._row import ForecastRow

__all__ = ["drawing_of", "html_of", "table_of"]

WIDTH = 80

# An interval whose bounds differ by more than this factor has no number in the middle, if the limit is not known
WIDE = 2.0
# Heading, and name of the number in a row. Columns in `OPTIONAL` are left out if all of their numbers are 0
TIMES: Sequence[tuple[str, str]] = (("p50", "p50"), ("p99", "p99"))
OPTIONAL: Sequence[tuple[str, str]] = (
    ("weight", "weight"),
    ("refused", "refused"),
    ("retried", "retried"),
    ("timed out", "timed_out"),
    ("failed", "failed"),
)
UNKNOWN = "?"
MILLION, THOUSAND, LONG = 1e6, 1e3, 1e5


def table_of(
    rows: Sequence[ForecastRow],
    elements: int,
    best: ForecastRow | None,
    assumptions: Sequence[str],
    *,
    is_known: bool,
) -> str:
    """The rows, the best one and the assumptions, at most 80 columns wide."""
    cells = _cells(rows, best, is_known=is_known)
    paragraphs = [*_legend(rows, elements, best, cells), *(f"- {each}" for each in assumptions)]
    notes = (line for each in paragraphs for line in wrap(each, WIDTH, subsequent_indent="  "))
    return "\n".join([*_lines(cells), "", *notes])


def html_of(
    rows: Sequence[ForecastRow],
    elements: int,
    best: ForecastRow | None,
    assumptions: Sequence[str],
    *,
    is_known: bool,
) -> str:
    """The display in a notebook."""
    table = _cells(rows, best, is_known=is_known)
    head, *cells = table
    header = "".join(f"<th>{escape(each)}</th>" for each in head)
    body = "".join(f"<tr>{''.join(f'<td>{escape(each)}</td>' for each in row)}</tr>" for row in cells)
    legend = "".join(f"<p>{escape(each)}</p>" for each in _legend(rows, elements, best, table))
    notes = "".join(f"<li>{escape(each)}</li>" for each in assumptions)
    return (
        f"<div>{drawing_of(rows, elements)}<table><thead><tr>{header}</tr></thead><tbody>{body}</tbody></table>"
        f"{legend}<ul>{notes}</ul></div>"
    )


def _legend(
    rows: Sequence[ForecastRow], elements: int, best: ForecastRow | None, cells: Sequence[Sequence[str]]
) -> list[str]:
    said = [f"{plural(elements, 'element')}. Intervals of 90 %. p50 and p99: from a record's first call to its output."]
    if best is not None:
        said.append(f"> Take capacity={best.capacity}: the smallest tested one that is about as fast as any.")
    if not all(row.is_tested for row in rows):
        said.append("* The sample has not reached this load: a guess.")
    if any(UNKNOWN in row for row in cells):
        said.append(f"{UNKNOWN} The sample cannot tell this number.")
    return said


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


def _cells(rows: Sequence[ForecastRow], best: ForecastRow | None, *, is_known: bool) -> list[list[str]]:
    def cell(row: ForecastRow, name: str, unit: Callable[[float], str]) -> str:
        low, high = row.intervals[name]
        return unit(getattr(row, name)) if is_known or high <= WIDE * low else UNKNOWN

    counts = [("calls", "calls"), *((head, name) for head, name in OPTIONAL if any(getattr(row, name) for row in rows))]
    table = [["capacity", "time", "90 %", *(head for head, _ in (*TIMES, *counts))]]
    for row in rows:
        mark = "> " if row is best else "" if row.is_tested else "* "
        table.append(
            [
                f"{mark}{row.capacity}",
                cell(row, "seconds", duration),
                f"{duration(row.low)} to {duration(row.high)}",
                *(cell(row, name, duration) for _, name in TIMES),
                *(cell(row, name, _short) for _, name in counts),
            ]
        )
    return table


def _short(number: float) -> str:
    """A number with at most six characters or so."""
    if number >= LONG:
        scale, unit = (MILLION, "M") if number >= MILLION else (THOUSAND, "k")
        return f"{amount(float(f'{number / scale:.3g}'))}{unit}"
    return amount(float(f"{number:.5g}"))


# Drawing, in pixels

LEFT, RIGHT, TOP, PANEL, GAP = 70, 20, 34, 150, 64
BAR = 0.45
STYLE = style_sheet(
    ".forecast",
    """\
.forecast text{font:13px system-ui,sans-serif;fill:var(--fg)}
.forecast .soft{fill:var(--soft);font-size:12px}
.forecast .grid{stroke:var(--grid)}
.forecast .bar{fill:var(--run)}
.forecast .guess{fill:none;stroke:var(--run);stroke-dasharray:4 3}
.forecast .interval{stroke:var(--fg);stroke-width:1.5}
""",
)


def drawing_of(rows: Sequence[ForecastRow], elements: int) -> str:
    """Two panels over the capacity: the time, and the weight or the calls. Bars of untested capacities are hollow."""
    width = max(480, LEFT + RIGHT + 90 * len(rows))
    cost = "weight" if any(row.weight for row in rows) else "calls"
    title = f"Forecast for {plural(elements, 'element')}"
    first = _panel(rows, "seconds", f"{title}: time, with intervals of 90 %", width, TOP)
    second = _panel(rows, cost, cost.capitalize(), width, TOP + PANEL + GAP)
    height = TOP + 2 * PANEL + GAP + 50
    description = "; ".join(f"capacity {row.capacity}: {_described(row, 'seconds')}" for row in rows)
    return document("forecast", width, height, title=title, description=description, style=STYLE, body=first + second)


def _unit_of(name: str) -> Callable[[float], str]:
    return duration if name == "seconds" else _short


def _described(row: ForecastRow, name: str) -> str:
    unit, (low, high) = _unit_of(name), row.intervals[name]
    return f"{unit(getattr(row, name))}, from {unit(low)} to {unit(high)}"


def _panel(rows: Sequence[ForecastRow], name: str, title: str, width: int, top: int) -> str:
    unit = _unit_of(name)
    highest = max(row.intervals[name][1] for row in rows) or 1.0
    step = nice(highest / 4)
    levels = -(-highest // step)
    bottom = top + PANEL
    parts = [text(LEFT, top - 14, title)]

    def height(value: float) -> float:
        return bottom - PANEL * value / (levels * step)

    for level in range(int(levels) + 1):
        y = height(level * step)
        parts.append(line(LEFT, y, width - RIGHT, y, "grid"))
        parts.append(text(LEFT - 6, y + 4, unit(level * step), "soft", "end"))
    place = (width - LEFT - RIGHT) / len(rows)
    for position, row in enumerate(rows):
        middle, value = LEFT + place * (position + 0.5), getattr(row, name)
        low, high = row.intervals[name]
        look, half = "bar" if row.is_tested else "guess", BAR * place / 2
        top_of_bar = height(value)
        seen = (
            f'<rect class="{look}" x="{middle - half:.1f}" y="{top_of_bar:.1f}" width="{2 * half:.1f}" '
            f'height="{bottom - top_of_bar:.1f}"/>'
        )
        interval = line(middle, height(low), middle, height(high), "interval")
        parts.append(group(f"capacity {row.capacity}: {_described(row, name)}", [seen, interval], "capacity"))
        parts.append(text(middle, bottom + 18, str(row.capacity), "", "middle"))
    parts.append(text(width - RIGHT, bottom + 34, "capacity", "soft", "end"))
    return "".join(parts)
