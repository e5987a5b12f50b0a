"""A drawing with axes, as SVG whose width follows the page, while its text keeps its size."""

from __future__ import annotations

from html import escape
from math import ceil, floor, log10

from ._units import amount

__all__ = ["Plot", "nice"]

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
        title: What it shows, in one sentence, for those who cannot see it.
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

    def add_levels(self, highest: float) -> None:
        """Draw the vertical axis, up to at least this value."""
        step = nice(highest / 4) if highest else 1.0
        self.top = max(step, step * ceil(highest / step))
        for number in range(round(self.top / step) + 1):
            y = self._y(number * step)
            self._parts.append(f'<line class="grid" x1="0" y1="{y:.1f}" x2="100%" y2="{y:.1f}"/>')
            self._parts.append(f'<text x="-6" y="{y + 4:.1f}" text-anchor="end">{amount(number * step)}</text>')

    def bar(self, left: float, width: float, value: float, label: str) -> None:
        """Draw a bar. Its label is shown while the pointer is anywhere above or below it."""
        x = f'x="{_percent(left)}" width="{_percent(width)}"'
        y, bottom = self._y(value), self._y(0)
        seen = f'<rect class="bar" {x} y="{y:.1f}" height="{bottom - y:.1f}"/>' if value > 0 else ""
        column = f'<rect class="column" {x} y="{self._above}" height="{bottom - self._above:.1f}"/>'
        self._parts.append(f"<g><title>{escape(label)}</title>{column}{seen}</g>")

    def tick(self, x: float, label: str, *, is_minor: bool) -> None:
        """Name a point of the horizontal axis. Minor names are left out on a narrow screen."""
        anchor = "middle" if x < NEAR_THE_END else "end"
        minor = ' class="minor"' if is_minor else ""
        y = self._height - BOTTOM + 18
        self._parts.append(f'<text{minor} x="{_percent(x)}" y="{y}" text-anchor="{anchor}">{escape(label)}</text>')

    def limit(self, value: float, label: str) -> None:
        """Draw a horizontal line with a name."""
        y = self._y(value)
        self._parts.append(f'<line class="mark" x1="0" y1="{y:.1f}" x2="100%" y2="{y:.1f}"/>')
        self._parts.append(f'<text class="mark-name" x="100%" y="{y - 5:.1f}" text-anchor="end">{escape(label)}</text>')

    def mark(self, x: float, label: str, line: int) -> None:
        """Draw a vertical line with a name above the plot, on this line of text from above.

        No name crosses another line if those further to the right are higher up.
        """
        y = TOP + LINE * line
        anchor, shift = ("end", -4) if x > ROOM_ON_THE_LEFT else ("start", 4)
        at = _percent(x)
        self._parts.append(f'<line class="mark" x1="{at}" y1="{y - 12}" x2="{at}" y2="{self._y(0):.1f}"/>')
        self._parts.append(
            f'<text class="mark-name" x="{at}" dx="{shift}" y="{y}" text-anchor="{anchor}">{escape(label)}</text>'
        )

    def svg(self) -> str:
        """The drawing."""
        title = escape(self._title)
        return (
            f'<svg class="plot" height="{self._height}" role="img" aria-label="{title}">'
            f"<title>{title}</title>{''.join(self._parts)}</svg>"
        )

    def _y(self, value: float) -> float:
        return self._above + (self._height - self._above - BOTTOM) * (1 - value / self.top)


def nice(number: float) -> float:
    """The smallest of 1, 2 or 5 times a power of ten that is not below the number."""
    power: float = 10.0 ** floor(log10(number))
    steps: list[float] = [digit * power for digit in (1, 2, 5, 10)]
    return next(step for step in steps if step >= 0.999 * number)


def _percent(share: float) -> str:
    return f"{100 * share:.2f}%"
