"""A matplotlib figure as an SVG for light and dark pages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from io import StringIO
from pathlib import Path
from typing import Any

# Okabe and Ito's colours, which can be distinguished with any colour vision. matplotlib draws with the colours for
# light pages. In the file each becomes a CSS variable, with another value on dark pages.
INK, MUTED = "#1f2328", "#59636e"
OURS, OTHERS, FLOOR = "#0072b2", "#e69f00", "#8c959f"
SERIES = (OURS, "#56b4e9", OTHERS, "#d55e00", "#cc79a7", "#009e73", "#f0e442")
DARK = {
    INK: "#e6edf3",
    MUTED: "#9198a1",
    OURS: "#4ea8de",
    FLOOR: "#6e7681",
    "#56b4e9": "#9bd3f5",
    OTHERS: "#f0b53f",
    "#d55e00": "#f07d3c",
    "#cc79a7": "#e0a0c4",
    "#009e73": "#2fc79b",
    "#f0e442": "#f5ec7a",
}
SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text, which can be selected, searched and read aloud
    "font.family": "sans-serif",
    "font.size": 9,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.titlesize": 9,
    "figure.titlesize": 10,
    "figure.titleweight": "bold",
    "axes.edgecolor": MUTED,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
}


@contextmanager
def picture(path: Path, title: str, height: float) -> Iterator[Any]:
    """Axes to draw on. They are written to `path` at the end of the block.

    Args:
        path: The SVG to write. Equal drawings give equal bytes.
        title: The line above the picture, which a screen reader reads as well.
        height: In inches; the width is eight.

    Raises:
        ImportError: matplotlib is missing.
    """
    import matplotlib  # noqa: PLC0415, ICN001 - needed only for figures

    matplotlib.use("svg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    with plt.rc_context({**SETTINGS, "svg.hashsalt": path.stem}):
        figure, axes = plt.subplots(figsize=(8, height), layout="constrained")
        figure.suptitle(title, x=0.01, horizontalalignment="left")
        yield axes
        drawn = StringIO()
        figure.savefig(drawn, format="svg", metadata={"Date": None, "Creator": None, "Type": None, "Format": None})
        plt.close(figure)
    path.write_text(_themed(drawn.getvalue(), title), encoding="utf-8")


def _themed(svg: str, title: str) -> str:
    """The SVG with a title, and with a CSS variable for each colour that differs on dark pages."""
    names = {colour: f"--c{number}" for number, colour in enumerate(DARK)}
    for colour, name in names.items():
        svg = svg.replace(colour, f"var({name})")
    light = " ".join(f"{name}: {colour};" for colour, name in names.items())
    dark = " ".join(f"{names[colour]}: {shade};" for colour, shade in DARK.items())
    style = f"<style>:root {{ {light} }} @media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}</style>"
    svg = re.sub(r"\s*<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"(<svg [^>]*)>", rf'\1 role="img">\n <title>{escape(title)}</title>\n {style}', svg, count=1)
    return re.sub(r"[ \t]+$", "", svg, flags=re.MULTILINE)
