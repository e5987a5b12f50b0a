"""Figures of a report, as SVG files that are identical for identical numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ._picture import FLOOR, MUTED, OTHERS, OURS, SERIES, picture
from ._report import Report


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of the page.

    Attributes:
        name: The end of the name of its file.
        section: The name of the section that shows it. A run without this section draws no figure.
        caption: What it shows.
        draw: Writes it to a path. Raises an `ImportError` if matplotlib is missing.
    """

    name: str
    section: str
    caption: str
    draw: Callable[[Report, Path], None]

    def image(self, path: Path) -> str:
        """The Markdown that shows the figure in a page."""
        return f"![{self.caption}]({self.path(path).name})"

    def path(self, page: Path) -> Path:
        """The file of the figure, in the folder of its page."""
        return page.with_name(f"{page.stem}-{self.name}.svg")


MEANINGS = {"this project": OURS, "others": OTHERS, "lower bound, on bare Trio": FLOOR}
OUR_NAMES = ("ordered", "unordered", "keyed")
FLOOR_NAME = "bare worker loop"


def _colour(name: str) -> str:
    what = name.split(",", maxsplit=1)[0]
    if what == FLOOR_NAME:
        return FLOOR
    return OURS if what in OUR_NAMES else OTHERS


def _overhead(report: Report, path: Path) -> None:
    ratios: dict[str, tuple[float, float, float]] = {}  # the median and the quartiles
    for section in (report.section("overhead"), report.section("engines")):
        for line in section.lines if section else ():
            if ratio := line.values.get("ratio"):
                ratios.setdefault(line.name, (ratio, line.values.get("from") or ratio, line.values.get("to") or ratio))
    ordered = sorted(ratios.items(), key=lambda item: -item[1][0])
    title = "Cost of an element, as a multiple of a bare loop of Trio workers: less is better"
    with picture(path, title, 1.2 + 0.24 * len(ordered)) as axes:
        for place, (name, (ratio, low, high)) in enumerate(ordered):
            colour = _colour(name)
            axes.plot([low, high], [place, place], color=colour, linewidth=2, alpha=0.6, solid_capstyle="round")
            axes.plot([ratio], [place], "o", color=colour, markersize=6)
            text = f"{ratio:.2g}" if ratio < 10 else f"{ratio:.0f}"
            axes.annotate(text, (high, place), xytext=(7, 0), textcoords="offset points", va="center")
        axes.axvline(1.0, color=MUTED, linewidth=0.8, zorder=0)
        axes.set_yticks(range(len(ordered)), [name for name, _ in ordered])
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
        axes.margins(x=0.1)
        axes.set_xlabel("log scale, median and quartiles; CPU time, wall time of other processes")
        _legend(axes, loc="upper right")


def _legend(axes: Any, **where: Any) -> None:
    from matplotlib.patches import Patch  # noqa: PLC0415 - needed only for figures

    handles = [Patch(color=colour, label=meaning) for meaning, colour in MEANINGS.items()]
    axes.legend(handles=handles, frameon=False, **where)


def _spark(report: Report, path: Path) -> None:
    section = report.section("gain")
    assert section is not None  # as `Figure.section` says
    columns = [column for column in section.formats if column.endswith(" rows")]
    height = 0.8 / len(section.lines)
    title = "Calls in Spark: without a barrier at the end of a batch, its size does not matter"
    with picture(path, title, 3.8) as axes:
        for number, line in enumerate(section.lines):
            shares = [100 * (line.values[column] or 0.0) for column in columns]
            places = [place + number * height for place in range(len(columns))]
            drawn = axes.bar(places, shares, height, label=line.name, color=SERIES[number])
            axes.bar_label(drawn, [f"{share:.0f}" for share in shares], padding=2, fontsize=8)
        axes.set_xticks(
            [place + 0.4 - height / 2 for place in range(len(columns))],
            [f"Arrow batches of {column}" for column in columns],
        )
        axes.set_ylabel("% of perfect scheduling")
        axes.set_ylim(0, 115)
        axes.legend(frameon=False, fontsize=8, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.1))


FIGURES = (
    Figure("overhead", "overhead", "Cost of an element by contender, as a multiple of the bare worker loop", _overhead),
    Figure("spark", "gain", "Share of perfect scheduling in Spark, by the size of Arrow batches", _spark),
)
