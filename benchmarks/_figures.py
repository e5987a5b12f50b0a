"""The figures: what the page shows of a report, as SVG that is the same for the same numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ._report import Report, Section

__all__ = ["FIGURES", "draw"]

# Okabe and Ito's colours, which everybody can tell apart
OURS, PEERS, FLOOR = "#0072B2", "#E69F00", "#7F7F7F"
GROUPS = ("#0072B2", "#56B4E9", "#E69F00", "#D55E00", "#CC79A7")
MEANINGS = {"the operator": OURS, "others": PEERS, "the floor, on Trio": FLOOR}
OUR_NAMES = ("ordered", "unordered", "keyed", "udfs.http.client")
FLOOR_NAME = "bare worker loop"
FLOORS = (FLOOR_NAME, "bare Trio streams and httptools")
COLUMN_MARKS = {FLOOR_NAME: (FLOOR, "s"), "ordered": (OURS, "o"), "unordered": (PEERS, "^")}


def draw(report: Report, name: str, path: Path) -> bool:
    """Draw a figure, if the report has what it shows.

    Raises:
        ImportError: matplotlib is missing.
    """
    return FIGURES[name](report, path)


@contextmanager
def _figure(path: Path, height: float, columns: int = 1) -> Iterator[Any]:
    import matplotlib  # noqa: PLC0415, ICN001 - all but the pictures works without it

    matplotlib.use("svg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    settings = {"svg.hashsalt": path.stem, "svg.fonttype": "none", "font.size": 9}  # the same numbers, the same bytes
    with plt.rc_context(settings):
        figure, axes = plt.subplots(1, columns, figsize=(8, height), layout="constrained")
        yield figure, axes
        for each in [axes] if columns == 1 else axes:
            each.spines[["top", "right"]].set_visible(False)
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)


def _colour(name: str) -> str:
    what = name.split(",", maxsplit=1)[0]
    if what in FLOORS:
        return FLOOR
    return OURS if what in OUR_NAMES else PEERS


def _bars(report: Report, sections: tuple[str, ...], column: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for name in sections:
        section = report.section(name)
        for line in section.lines if section else ():
            number = line.values.get(column)
            if number is not None and number > 0:
                found.setdefault(line.name, number)
    return found


def _overhead(report: Report, path: Path) -> bool:
    bars = dict(sorted(_bars(report, ("overhead", "engines"), "ratio").items(), key=lambda each: -each[1]))
    if not bars:
        return False
    with _figure(path, 0.8 + 0.26 * len(bars)) as (_, axes):
        drawn = axes.barh(list(bars), list(bars.values()), color=[_colour(name) for name in bars])
        axes.bar_label(
            drawn, [f"{number:.2g}" if number < 10 else f"{number:.0f}" for number in bars.values()], padding=3
        )
        axes.axvline(1.0, color=FLOOR, linewidth=0.8)
        _legend(axes, loc="upper right")
        axes.set_xscale("log")
        axes.margins(x=0.1)
        axes.set(title="Cost of an element, one turn of the scheduler per call")
        axes.set_xlabel(
            "times the bare worker loop (log scale)\nCPU time; wall time of what runs in processes of its own"
        )
    return True


def _latency(report: Report, path: Path) -> bool:
    bars = _bars(report, ("throughput 100",), "real share")
    if not bars:
        return False
    names = list(bars)[::-1]
    with _figure(path, 0.8 + 0.26 * len(bars)) as (_, axes):
        drawn = axes.barh(names, [100 * bars[name] for name in names], color=[_colour(name) for name in names])
        axes.bar_label(drawn, [f"{bars[name]:.0%}" for name in names], padding=3)
        axes.set_xlim(0, 110)
        _legend(axes, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=3)
        axes.set(title="20 ms mean latency, 1 % at one second, capacity 100")
        axes.set_xlabel("share of Little's law, % (real clock)")
    return True


def _legend(axes: Any, **where: Any) -> None:
    from matplotlib.patches import Patch  # noqa: PLC0415 - as above

    handles = [Patch(color=colour, label=meaning) for meaning, colour in MEANINGS.items()]
    axes.legend(handles=handles, frameon=False, **where)


def _scale(report: Report, path: Path) -> bool:
    tables = [report.section(name) for name in ("scale of elements", "scale of capacity", "scale of memory")]
    lengths, capacities, memory = tables
    if lengths is None or capacities is None or memory is None:
        return False
    with _figure(path, 2.9, 3) as (_, (left, middle, right)):
        _curves(left, lengths, "elements")
        _curves(middle, capacities, "capacity")
        left.set(ylabel="CPU, μs per element", title="Length")
        middle.set(title="Capacity")
        left.legend(frameon=False, fontsize=8)
        right.plot(_sizes(memory), [line.values["MB"] or 0.0 for line in memory.lines], "o-", color=OURS)
        right.set(xscale="log", yscale="log", xlabel="buffer, records", ylabel="held, MB", title="Memory")
        right.yaxis.set_major_formatter("{x:g}")
        right.yaxis.set_minor_formatter("")
        right.set_ylim(0.1, 10 ** math.ceil(math.log10(max(line.values["MB"] or 1.0 for line in memory.lines))))
    return True


def _curves(axes: Any, section: Section, what: str) -> None:
    for name, (colour, mark) in COLUMN_MARKS.items():
        costs = [line.values.get(f"{name}, μs") for line in section.lines]
        axes.plot(_sizes(section), costs, f"{mark}-", color=colour, label=name, markersize=4)
    axes.set(xscale="log", xlabel=what)
    axes.set_ylim(bottom=0)


def _sizes(section: Section) -> list[float]:
    return [float(line.name.replace(",", "")) for line in section.lines]


def _http(report: Report, path: Path) -> bool:
    bars = dict(sorted(_bars(report, ("http",), "requests/s").items(), key=lambda each: each[1]))
    if not bars:
        return False
    with _figure(path, 0.8 + 0.26 * len(bars)) as (_, axes):
        drawn = axes.barh(list(bars), list(bars.values()), color=[_colour(name) for name in bars])
        axes.bar_label(drawn, [f"{number:,.0f}" for number in bars.values()], padding=3)
        axes.margins(x=0.1)
        axes.set(title="HTTP on loopback, capacity 100, one client", xlabel="requests per second")
    return True


def _spark(report: Report, path: Path) -> bool:
    sections = [(size, report.section(f"gain {size}")) for size in (100, 1_000, 10_000)]
    tables = [(size, section) for size, section in sections if section is not None]
    if not tables:
        return False
    names = [line.name for line in tables[0][1].lines]
    height = 0.8 / len(names)
    with _figure(path, 3.6) as (_, axes):
        for number, name in enumerate(names):
            shares = [
                100 * (line.values["of perfect"] or 0.0) if (line := each.line(name)) else 0.0 for _, each in tables
            ]
            places = [place + number * height for place in range(len(tables))]
            colour = _colour(name)
            drawn = axes.bar(places, shares, height, label=name, color=colour if colour == FLOOR else GROUPS[number])
            axes.bar_label(drawn, [f"{share:.0f}" for share in shares], padding=2, fontsize=8)
        axes.set_xticks(
            [place + 0.4 - height / 2 for place in range(len(tables))], [f"{size:,} rows" for size, _ in tables]
        )
        axes.set(title="20 ms mean latency, 1 % at one second, capacity 100", ylabel="share of perfect scheduling, %")
        axes.set_xlabel("Arrow batches of")
        axes.set_ylim(0, 115)
        axes.legend(frameon=False, fontsize=8, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.2))
    return True


FIGURES: dict[str, Callable[[Report, Path], bool]] = {
    "overhead": _overhead,
    "latency": _latency,
    "scale": _scale,
    "http": _http,
    "spark": _spark,
}
