"""A forecast as a table of text, and as a drawing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from textwrap import wrap

from .._values.describe import amount, duration, plural
from .._watch.charts import Plot
from .._watch.svg import document, style_sheet
from ._row import ForecastRow

__all__ = ["drawing_of", "text_of"]

WIDTH = 80

# An interval whose bounds differ by more than this factor has no number in the middle, if the limit is not known
WIDE = 2.0
TIMES = ("p50", "p99")
OPTIONAL = ("weight", "refused", "retried", "timed_out", "failed")  # left out if they are 0 in all rows
LEFT_OUT = ("p50", "p99", "90 %")  # columns of a table that is too wide, the first one first
UNKNOWN = "?"
MILLION, THOUSAND, LONG = 1e6, 1e3, 1e5


def text_of(
    rows: Sequence[ForecastRow], elements: int, best: ForecastRow | None, assumptions: Sequence[str], *, is_known: bool
) -> str:
    """The rows of a `Forecast`, its best one and its assumptions, at most 80 columns wide."""
    columns = _columns(rows, best, is_known=is_known)
    widths = {name: max(map(len, [name, *cells])) for name, cells in columns.items()}
    for name in LEFT_OUT:
        if sum(widths.values()) + 2 * (len(widths) - 1) > WIDTH:
            del widths[name]
    table = zip(*([name, *columns[name]] for name in widths), strict=True)
    lines = ["  ".join(map(str.rjust, line, widths.values())) for line in table]
    legend = _legend(elements, best, is_tested=all(row.is_tested for row in rows))
    if any(UNKNOWN in cells for cells in columns.values()):
        legend.append(f"{UNKNOWN} The sample cannot tell this number.")
    paragraphs = [*legend, *(f"- {each}" for each in assumptions)]
    return "\n".join([*lines, "", *(line for each in paragraphs for line in wrap(each, WIDTH, subsequent_indent="  "))])


def _columns(rows: Sequence[ForecastRow], best: ForecastRow | None, *, is_known: bool) -> dict[str, list[str]]:
    """The heads of the columns, and their cells."""

    def cells(name: str, unit: Callable[[float], str]) -> list[str]:
        bounds = (row.intervals[name] for row in rows)
        is_shown = [is_known or high <= WIDE * low for low, high in bounds]
        return [unit(getattr(row, name)) if shown else UNKNOWN for row, shown in zip(rows, is_shown, strict=True)]

    marks = ["> " if row is best else "" if row.is_tested else "* " for row in rows]
    counts = ["calls", *(name for name in OPTIONAL if any(getattr(row, name) for row in rows))]
    return {
        "capacity": [f"{mark}{row.capacity}" for mark, row in zip(marks, rows, strict=True)],
        "time": cells("seconds", duration),
        "90 %": [f"{duration(row.low)} to {duration(row.high)}" for row in rows],
        **{name: cells(name, duration) for name in TIMES},
        **{name.replace("_", " "): cells(name, _short) for name in counts},
    }


def _legend(elements: int, best: ForecastRow | None, *, is_tested: bool) -> list[str]:
    times = "p50 and p99: from a record's first call to its output."
    legend = [f"{plural(elements, 'element')}. Intervals of 90 %. {times}"]
    if best is not None:
        legend.append(f"> Take capacity={best.capacity}: the smallest tested one that is about as fast as any.")
    if not is_tested:
        legend.append("* The sample has not reached this load: a guess.")
    return legend


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
