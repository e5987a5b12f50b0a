"""Charts as SVG, and the colors of all views, for light and dark pages.

The width of a chart follows the page, while its text keeps its size.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from math import ceil, floor, log10
from xml.sax.saxutils import escape

from .._account.histogram import Histogram
from .._values.describe import amount, duration, printable

QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}

# Bars of the distribution per power of ten
PER_DECADE = 10

# Without it, rounding would leave gaps between neighbors
OVERLAP = 0.0003

# With more powers of ten, only these have names
MAX_DECADES = 1.5


def over_time(unit: str, values: Sequence[float], width: float, limit: int | None = None) -> str:
    """The values of intervals of time, as bars; empty if there are none.

    Args:
        unit: What the values count, in words.
        values: One for each interval.
        width: The length of an interval, in seconds.
        limit: The capacity, as a line. None: it is not known.
    """
    if not values:
        return ""
    plot = Plot(f"Over time: at most {amount(max(values))} {unit}")
    plot.add_levels(max([*values, limit or 0]))
    step = 1 / len(values)
    for number, value in enumerate(values):
        plot.bar(number * step, step + OVERLAP, value, f"{amount(value)} {unit} after {duration(number * width)}")
    if limit is not None:
        plot.limit(limit, f"capacity {limit:,}")
    end = len(values) * width
    tick = _nice(end / 4)
    for number in range(int(end / tick) + 1):
        plot.tick(number * tick / end, duration(number * tick))
    return plot.svg()


def latency_chart(latency: Histogram, longest: float = math.inf) -> str:
    """The distribution of the durations of calls, on a logarithmic axis, with the percentiles.

    Args:
        latency: The durations of the calls.
        longest: The exact longest duration. The middle of its bucket may be above it.
    """
    powers = _by_power(latency)
    if not powers:
        return ""
    first, last = _range_of(powers)
    step = 1 / (last - first + 1)
    half = duration(min(latency.p50, longest))
    plot = Plot(f"Distribution of the latency: half of the calls took at most {half}", len(QUANTILES))
    plot.add_levels(max(powers.values()))
    for power, count in sorted(powers.items()):
        label = f"{amount(count)} calls from {duration(_edge(power))} to {duration(_edge(power + 1))}"
        plot.bar((power - first) * step + 0.001, step - 0.002, count, label)
    for seconds in _ticks(first, last + 1):
        plot.tick((log10(seconds) * PER_DECADE - first) * step, duration(seconds))
    # From the right to the left, so that no name crosses a line
    for line, (name, share) in enumerate(reversed(QUANTILES.items())):
        seconds = min(latency.quantile(share), longest)
        if seconds > 0:
            plot.mark((log10(seconds) * PER_DECADE - first) * step, f"{name} {duration(seconds)}", line)
    return plot.svg()


def _range_of(powers: dict[int, int]) -> tuple[int, int]:
    """The first and the last bar, at least a power of ten apart, so that the axis has a name."""
    missing = max(0, PER_DECADE - (max(powers) - min(powers)))
    return min(powers) - missing // 2, max(powers) + missing - missing // 2


def _ticks(first: int, end: int) -> list[float]:
    """The named durations on the axis."""
    digits = (1, 2, 5) if end - first <= MAX_DECADES * PER_DECADE else (1,)
    decades = range(first // PER_DECADE, end // PER_DECADE + 1)
    durations = [digit * 10.0**decade for decade in decades for digit in digits]
    return [seconds for seconds in durations if first <= PER_DECADE * log10(seconds) <= end]


def _by_power(latency: Histogram) -> Counter[int]:
    """The number of calls by bar. A logarithmic axis has no place for calls that took no time."""
    counts = Counter[int]()
    for seconds, count in latency.buckets():
        if seconds > 0:
            counts[floor(log10(seconds) * PER_DECADE)] += count
    return counts


def _edge(power: int) -> float:
    return math.pow(10.0, power / PER_DECADE)


# Axes

# In pixels. Horizontal positions are shares of the width
HEIGHT, BOTTOM, TOP = 190, 24, 22
LINE = 16

# A name at the right end stays inside the drawing
NEAR_THE_END = 0.97
# A name beside a line has room on its left from here on
ROOM_ON_THE_LEFT = 0.25


class Plot:
    """A drawing with axes.

    Args:
        title: One sentence for screen readers: what the drawing shows.
        lines_above: The number of names that `mark` writes above the plot.

    Attributes:
        top: The value at the upper edge.
    """

    def __init__(self, title: str, lines_above: int = 0) -> None:
        self._title = title
        self._parts: list[str] = []
        self._above = TOP + LINE * lines_above
        self._height = HEIGHT + LINE * lines_above
        self.top = 1.0

    def add_levels(self, highest: float, unit: Callable[[float], str] = amount) -> None:
        """Draw the vertical axis, up to at least this value. `unit` writes a value."""
        step = _nice(highest / 4) if highest else 1.0
        self.top = max(step, step * ceil(highest / step))
        for number in range(round(self.top / step) + 1):
            y = self._y(number * step)
            self._parts.append(f'<line class="grid" x1="0" y1="{y:.1f}" x2="100%" y2="{y:.1f}"/>')
            self._parts.append(f'<text x="-6" y="{y + 4:.1f}" text-anchor="end">{unit(number * step)}</text>')

    def bar(self, left: float, width: float, value: float, label: str, look: str = "bar") -> None:
        """Draw a bar. Its label is shown while the pointer is anywhere above or below it."""
        x = f'x="{_percent(left)}" width="{_percent(width)}"'
        y, bottom = self._y(value), self._y(0)
        seen = f'<rect class="{look}" {x} y="{y:.1f}" height="{bottom - y:.1f}"/>' if value > 0 else ""
        column = f'<rect class="column" {x} y="{self._above}" height="{bottom - self._above:.1f}"/>'
        self._parts.append(f"<g><title>{escaped(label)}</title>{column}{seen}</g>")

    def interval(self, x: float, low: float, high: float) -> None:
        """Draw the interval of a value, as a vertical line."""
        ends = f'y1="{self._y(low):.1f}" y2="{self._y(high):.1f}"'
        self._parts.append(f'<line class="interval" x1="{_percent(x)}" x2="{_percent(x)}" {ends}/>')

    def tick(self, x: float, label: str) -> None:
        """Name a point of the horizontal axis."""
        anchor = "middle" if x < NEAR_THE_END else "end"
        y = self._height - BOTTOM + 18
        self._parts.append(f'<text x="{_percent(x)}" y="{y}" text-anchor="{anchor}">{escaped(label)}</text>')

    def limit(self, value: float, label: str) -> None:
        """Draw a horizontal line with a name."""
        y = self._y(value)
        self._parts.append(f'<line class="mark" x1="0" y1="{y:.1f}" x2="100%" y2="{y:.1f}"/>')
        self._parts.append(
            f'<text class="mark-name" x="100%" y="{y - 5:.1f}" text-anchor="end">{escaped(label)}</text>'
        )

    def mark(self, x: float, label: str, line: int) -> None:
        """Draw a vertical line with a name above the plot, on this line of text from above.

        No name crosses another line if a name is higher than the names on its left.
        """
        y = TOP + LINE * line
        anchor, shift = ("end", -4) if x > ROOM_ON_THE_LEFT else ("start", 4)
        at = _percent(x)
        self._parts.append(f'<line class="mark" x1="{at}" y1="{y - 12}" x2="{at}" y2="{self._y(0):.1f}"/>')
        self._parts.append(
            f'<text class="mark-name" x="{at}" dx="{shift}" y="{y}" text-anchor="{anchor}">{escaped(label)}</text>'
        )

    def svg(self) -> str:
        """The drawing."""
        title = escaped(self._title)
        return (
            f'<svg class="plot" height="{self._height}" role="img" aria-label="{title}">'
            f"<title>{title}</title>{''.join(self._parts)}</svg>"
        )

    def _y(self, value: float) -> float:
        return self._above + (self._height - self._above - BOTTOM) * (1 - value / self.top)


def _nice(number: float) -> float:
    """The smallest of 1, 2 or 5 times a power of ten that is not below the number."""
    power: float = 10.0 ** floor(log10(number))
    steps: list[float] = [digit * power for digit in (1, 2, 5, 10)]
    return next(step for step in steps if step >= 0.999 * number)


def _percent(share: float) -> str:
    return f"{100 * share:.2f}%"


# Whole pages

# Color-blind safe (Okabe and Ito)
LIGHT = """--fg:#1f2328;--soft:#59636e;--grid:#d0d7de;--run:#0072b2;--bad:#c4372a;--backoff:#b5c7d6;--handler:#7a5195;
--order:#e69f00;--emitted:#009e73;--wall:#b3470a"""
DARK = """--fg:#e6edf3;--soft:#9198a1;--grid:#30363d;--run:#56b4e9;--bad:#ff7b72;
--backoff:#4a6074;--handler:#bc8cff;--order:#e6a817;--emitted:#2fd6a2;--wall:#ff8a4c"""


def style_sheet(selector: str, rules: str) -> str:
    """The colors, as variables of what this CSS selector matches, and then the rules."""
    return f"\n{selector}{{{LIGHT}}}\n@media (prefers-color-scheme:dark){{{selector}{{{DARK}}}}}\n{rules}"


def escaped(content: str) -> str:
    """Text of a document. XML has no control characters and no lone surrogates, not even as references."""
    return escape(printable(content), {'"': "&quot;"})


def document(look: str, width: int, height: int, *, title: str, description: str, style: str, body: str) -> str:
    """An SVG document. A screen reader reads its title and description."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="{look}" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-labelledby="{look}-title {look}-description">\n'
        f'<title id="{look}-title">{escaped(title)}</title>\n'
        f'<desc id="{look}-description">{escaped(description)}</desc>\n'
        f"<style>{style}</style>\n{body}\n</svg>\n"
    )
