"""Figures of a report, as SVG files that are identical for identical numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ._picture import FLOOR, INK, MUTED, OTHERS, OURS, SERIES, picture
from ._report import Line, Report

__all__ = ["FIGURES", "draw"]

MEANINGS = {"this project": OURS, "others": OTHERS, "lower bound, on bare Trio": FLOOR}
OUR_NAMES = ("ordered", "unordered", "keyed")
FLOOR_NAME = "bare worker loop"


def draw(report: Report, name: str, path: Path) -> bool:
    """Draw a figure. Returns False if the report lacks its numbers.

    Raises:
        ImportError: matplotlib is missing.
    """
    return FIGURES[name](report, path)


def _colour(name: str) -> str:
    what = name.split(",", maxsplit=1)[0]
    if what == FLOOR_NAME:
        return FLOOR
    return OURS if what in OUR_NAMES else OTHERS


def _measured(report: Report, sections: tuple[str, ...], column: str) -> list[Line]:
    """The lines with a number above 0 in the column; only the first of each name."""
    found: dict[str, Line] = {}
    for name in sections:
        section = report.section(name)
        for line in section.lines if section else ():
            if (line.values.get(column) or 0) > 0:
                found.setdefault(line.name, line)
    return list(found.values())


def _number(line: Line, column: str) -> float:
    number = line.values[column]
    assert number is not None
    return number


def _overhead(report: Report, path: Path) -> bool:
    lines = _measured(report, ("overhead", "engines"), "ratio")
    lines.sort(key=lambda line: -_number(line, "ratio"))
    if not lines:
        return False
    title = "Cost of an element, as a multiple of a bare loop of Trio workers: less is better"
    with picture(path, title, 1.2 + 0.24 * len(lines)) as axes:
        for place, line in enumerate(lines):
            ratio, colour = _number(line, "ratio"), _colour(line.name)
            low, high = line.values.get("from") or ratio, line.values.get("to") or ratio
            axes.plot([low, high], [place, place], color=colour, linewidth=2, alpha=0.6, solid_capstyle="round")
            axes.plot([ratio], [place], "o", color=colour, markersize=6)
            text = f"{ratio:.2g}" if ratio < 10 else f"{ratio:.0f}"
            axes.annotate(text, (high, place), xytext=(7, 0), textcoords="offset points", va="center")
        axes.axvline(1.0, color=MUTED, linewidth=0.8, zorder=0)
        axes.set_yticks(range(len(lines)), [line.name for line in lines])
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
        axes.margins(x=0.1)
        axes.set_xlabel("log scale, median and quartiles; CPU time, wall time of other processes")
        _legend(axes, loc="upper right")
    return True


def _legend(axes: Any, **where: Any) -> None:
    from matplotlib.patches import Patch  # noqa: PLC0415 - needed only for figures

    handles = [Patch(color=colour, label=meaning) for meaning, colour in MEANINGS.items()]
    axes.legend(handles=handles, frameon=False, **where)


def _spark(report: Report, path: Path) -> bool:
    sections = [(size, report.section(f"gain {size}")) for size in (100, 1_000, 10_000)]
    tables = [(size, section) for size, section in sections if section is not None]
    if not tables:
        return False
    names = [line.name for line in tables[0][1].lines]
    height = 0.8 / len(names)
    title = "Calls in Spark: without a barrier at the end of a batch, its size does not matter"
    with picture(path, title, 3.8) as axes:
        for number, name in enumerate(names):
            shares = [
                100 * (line.values["of perfect"] or 0.0) if (line := each.line(name)) else 0.0 for _, each in tables
            ]
            places = [place + number * height for place in range(len(tables))]
            colour = FLOOR if _colour(name) == FLOOR else SERIES[number]
            drawn = axes.bar(places, shares, height, label=name, color=colour)
            axes.bar_label(drawn, [f"{share:.0f}" for share in shares], padding=2, fontsize=8)
        axes.set_xticks(
            [place + 0.4 - height / 2 for place in range(len(tables))],
            [f"Arrow batches of {size:,} rows" for size, _ in tables],
        )
        axes.set_ylabel("% of perfect scheduling")
        axes.set_ylim(0, 115)
        axes.legend(frameon=False, fontsize=8, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.1))
    return True


def _streaming(report: Report, path: Path) -> bool:
    section = report.section("streaming")
    if section is None or not section.series:
        return False
    with picture(
        path, "Each box is a micro-batch of 200 calls: stragglers hold it up, or are carried over", 2.0
    ) as axes:
        for lane, (batches, colour) in enumerate(zip(section.series.values(), (OTHERS, OURS), strict=True)):
            axes.broken_barh(batches, (-lane - 0.3, 0.6), facecolor=colour, edgecolor=INK, linewidth=0.6)
            start, seconds = max(batches, key=lambda batch: batch[1])
            middle, above = start + seconds / 2, -lane + 0.33
            axes.annotate(f"longest: {seconds:.1f} s", (middle, above), ha="center", va="bottom", fontsize=8)
        axes.set_yticks([-lane for lane in range(len(section.series))], list(section.series))
        axes.set_ylim(-len(section.series) + 0.5, 0.75)
        axes.set_xlim(left=0)
        axes.spines["left"].set_visible(False)
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel("seconds since the first micro-batch")
    return True


FIGURES: dict[str, Callable[[Report, Path], bool]] = {
    "overhead": _overhead,
    "spark": _spark,
    "streaming": _streaming,
}
