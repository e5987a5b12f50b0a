"""A picture as SVG: bars, boxes and arrows, from top to bottom."""

from __future__ import annotations

import textwrap
from xml.sax.saxutils import escape, quoteattr

from pictures.style import STYLE
from trio_asyncio_io._watch.charts import escaped

WIDTH = 640
LINE = 58  # characters of the title per line
THICK, THIN = 7, 3  # half the heights of bars


class Figure:
    """Collects the parts of a picture.

    Attributes:
        y: The lower edge so far.
    """

    def __init__(self, title: str, description: str, name: str) -> None:
        self._title, self._description, self._name = title, description, name
        lines = textwrap.wrap(title, LINE)
        self.parts = [text(14, 26 + 22 * number, line, "title") for number, line in enumerate(lines)]
        self.y = 10.0 + 22 * len(lines)

    def add(self, *parts: str) -> None:
        self.parts += parts

    def label(self, content: str, look: str = "soft", x: float = 14) -> None:
        """A line of text below everything so far."""
        for part in textwrap.wrap(content, 92 - round(x / 7)):
            self.y += 19
            self.parts.append(text(x, self.y, part, look))

    def svg(self) -> str:
        """The document. Its identifiers are those of this picture, so that a page may contain several."""
        body = "\n".join(self.parts)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="timeline" viewBox="0 0 {WIDTH} {round(self.y + 14)}" '
            f'role="img" aria-labelledby="{self._name}-title {self._name}-description">\n'
            f'<title id="{self._name}-title">{escape(self._title)}</title>\n'
            f'<desc id="{self._name}-description">{escape(self._description)}</desc>\n'
            f"<style>{STYLE}</style>\n{body}\n</svg>\n"
        )


def box(x: float, y: float, width: float, height: float, content: str, look: str = "box") -> str:  # noqa: PLR0917
    """A box with centered lines of text."""
    lines = content.split("\n")
    top = y + height / 2 + 4.5 - 8 * (len(lines) - 1)
    texts = "".join(text(x + width / 2, top + 16 * number, line, "", "middle") for number, line in enumerate(lines))
    return f'<rect class="{look}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="4"/>{texts}'


def arrow(x1: float, y1: float, x2: float, y2: float) -> str:
    """A straight, horizontal or vertical arrow."""
    dx, dy = (x2 > x1) - (x2 < x1), (y2 > y1) - (y2 < y1)
    back, side = (x2 - 8 * dx, y2 - 8 * dy), (4 * dy, 4 * dx)
    tip = f"{x2:g},{y2:g} {back[0] + side[0]:g},{back[1] + side[1]:g} {back[0] - side[0]:g},{back[1] - side[1]:g}"
    return f'<path class="arrow" d="M{x1:g} {y1:g}L{back[0]:g} {back[1]:g}"/><polygon class="tip" points="{tip}"/>'


def bar(look: str, start: float, end: float, y: float) -> str:
    """A bar around the height `y`. Time without work is a thin bar or a dotted line."""
    if look in {"key", "slot", "gate", "consumer"}:
        return line(start, y, end, y, look)
    half = THIN if look == "backoff" else THICK
    width = max(end - start, 1.5)
    return f'<rect class="{look}" x="{start:.1f}" y="{y - half:g}" width="{width:.1f}" height="{2 * half}" rx="2"/>'


def dot(x: float, y: float) -> str:
    """The mark of an output."""
    return f'<circle class="emitted" cx="{x:.1f}" cy="{y:g}" r="5"/>'


def cross(x: float, y: float) -> str:
    """The mark of an invocation that was cancelled."""
    return f'<path class="cross" d="M{x - 4:.1f} {y - 4:g}l8 8m0 -8l-8 8"/>'


def text(x: float, y: float, content: str, look: str = "", anchor: str = "start") -> str:
    """A line of text. `look` is a class of the style sheet."""
    return f'<text class="{look}" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escaped(content)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, look: str) -> str:
    """A straight line."""
    return f'<line class="{look}" x1="{x1:.1f}" y1="{y1:g}" x2="{x2:.1f}" y2="{y2:g}"/>'


def group(title: str, parts: list[str], look: str) -> str:
    """Parts with a title, which a browser shows for the pointer and reads aloud."""
    return f"<g class={quoteattr(look)}><title>{escaped(title)}</title>{''.join(parts)}</g>"
