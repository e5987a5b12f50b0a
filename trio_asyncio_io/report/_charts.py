"""The drawings of a report: SVG inside the page, with its colors for light and dark."""

from __future__ import annotations

import math
from html import escape
from math import ceil, floor, log10

from .._core.histogram import Histogram
from ._series import Series

__all__ = ["amount", "duration", "latency_chart", "running_chart", "throughput_chart"]

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 190, 64, 12, 22, 24

# Numbers from here on are written without decimals
THREE_DIGITS = 100

QUANTILES = (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))


def throughput_chart(series: Series) -> str:
    """Outputs per second over time."""
    rates = series.rates()
    title = f"Throughput over time: at most {amount(max(rates, default=0.0))} outputs per second"
    return _over_time(title, rates, series.width, "outputs per second")


def running_chart(series: Series, capacity: int | None) -> str:
    """Invocations in flight over time, with the capacity as a line. None: the capacity is not known."""
    running = [float(count) for count in series.running()]
    title = f"Calls in flight over time: at most {amount(max(running, default=0.0))}"
    return _over_time(title, running, series.width, "calls in flight", capacity)


def latency_chart(latency: Histogram) -> str:
    """How many calls took how long, on a logarithmic axis, with the percentiles."""
    powers = _by_power(latency)
    if not powers:
        return ""
    first, last = min(powers), max(powers)
    highest = max(powers.values())
    step = (WIDTH - LEFT - RIGHT) / (last - first + 1)
    plot = _Plot(f"Distribution of the latency: half of the calls took at most {duration(latency.p50)}")
    plot.add_levels(highest)
    for power, count in sorted(powers.items()):
        x, y = LEFT + (power - first) * step, plot.y(count / plot.top)
        label = f"{amount(count)} calls from {duration(_edge(power))} to {duration(_edge(power + 1))}"
        plot.bar(x + 0.5, y, max(step - 1, 1), label)
    for seconds in (digit * 10.0**n for n in range(first // PER_DECADE, last // PER_DECADE + 2) for digit in (1, 2, 5)):
        position = log10(seconds) * PER_DECADE - first
        if 0 <= position <= last - first + 1:
            plot.tick(LEFT + position * step, duration(seconds))
    for number, (name, share) in enumerate(QUANTILES):
        seconds = latency.quantile(share)
        if seconds > 0:
            plot.mark(LEFT + (log10(seconds) * PER_DECADE - first) * step, f"{name} {duration(seconds)}", number)
    return plot.svg()


# Bars of the distribution per power of ten
PER_DECADE = 10


def _by_power(latency: Histogram) -> dict[int, int]:
    """The number of calls by bar. Calls that took no time are in the first one."""
    counts: dict[int, int] = {}
    none = 0
    for seconds, count in latency.buckets():
        if seconds > 0:
            power = floor(log10(seconds) * PER_DECADE)
            counts[power] = counts.get(power, 0) + count
        else:
            none += count
    if none and counts:
        counts[min(counts)] += none
    return counts


def _edge(power: int) -> float:
    return math.pow(10.0, power / PER_DECADE)


def _over_time(title: str, values: list[float], width: float, unit: str, limit: int | None = None) -> str:
    if not values:
        return ""
    plot = _Plot(title)
    plot.add_levels(max([*values, limit or 0]))
    step = (WIDTH - LEFT - RIGHT) / len(values)
    for number, value in enumerate(values):
        label = f"{amount(value)} {unit} after {duration(number * width)}"
        plot.bar(LEFT + number * step, plot.y(value / plot.top), step + 0.3, label)
    if limit is not None:
        plot.limit(plot.y(limit / plot.top), f"capacity {limit:,}")
    end = len(values) * width
    tick = _nice(end / 6)
    for number in range(int(end / tick) + 1):
        plot.tick(LEFT + number * tick / end * (WIDTH - LEFT - RIGHT), duration(number * tick))
    return plot.svg()


class _Plot:
    """A drawing with axes.

    Attributes:
        top: The value at the upper edge.
    """

    def __init__(self, title: str) -> None:
        self._title = title
        self._parts: list[str] = []
        self.top = 1.0

    def add_levels(self, highest: float) -> None:
        step = _nice(highest / 4) if highest else 1.0
        self.top = max(step, step * ceil(highest / step))
        for number in range(round(self.top / step) + 1):
            y = self.y(number * step / self.top)
            self._parts.append(f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>')
            text = amount(number * step)
            self._parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{text}</text>')

    def bar(self, x: float, y: float, width: float, label: str) -> None:
        height = self.y(0) - y
        if height > 0:
            self._parts.append(
                f'<rect class="bar" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}">'
                f"<title>{escape(label)}</title></rect>"
            )

    def tick(self, x: float, label: str) -> None:
        anchor = "middle" if x < WIDTH - RIGHT - 14 else "end"
        self._parts.append(
            f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="{anchor}">{escape(label)}</text>'
        )

    def limit(self, y: float, label: str) -> None:
        self._parts.append(f'<line class="mark" x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>')
        self._parts.append(
            f'<text class="mark-name" x="{WIDTH - RIGHT}" y="{y - 4:.1f}" text-anchor="end">{escape(label)}</text>'
        )

    def mark(self, x: float, label: str, number: int) -> None:
        y = TOP + 14 + 20 * number
        self._parts.append(f'<line class="mark" x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{self.y(0):.1f}"/>')
        is_right = x > WIDTH / 2
        anchor, shift = ("end", -4) if is_right else ("start", 4)
        self._parts.append(
            f'<text class="mark-name" x="{x + shift:.1f}" y="{y}" text-anchor="{anchor}">{escape(label)}</text>'
        )

    def y(self, share: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - share)

    def svg(self) -> str:
        return (
            f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(self._title)}">'
            f"<title>{escape(self._title)}</title>{''.join(self._parts)}</svg>"
        )


def _nice(number: float) -> float:
    """The smallest of 1, 2 or 5 times a power of ten that is not below the number."""
    power: float = 10.0 ** floor(log10(number))
    steps: list[float] = [digit * power for digit in (1, 2, 5, 10)]
    return next(step for step in steps if step >= 0.999 * number)


def amount(number: float) -> str:
    """A number for people: whole with separators, or with three digits."""
    return f"{number:,.0f}" if number >= THREE_DIGITS or number == int(number) else f"{number:.3g}"


def duration(seconds: float) -> str:
    """Seconds for people, with three digits and a unit."""
    for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "μs")):
        if seconds >= 0.9995 * scale:
            return f"{seconds / scale:.3g} {unit}" if seconds < 10 * THREE_DIGITS else f"{seconds:,.0f} s"
    return f"{seconds * 1e9:.3g} ns" if seconds else "0"
