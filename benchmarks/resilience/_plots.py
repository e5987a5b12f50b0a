"""Pictures of the experiments: a line for each contender, over time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .._picture import MUTED, OURS, SERIES, picture
from .._report import Section
from ._experiment import Experiment

OTHERS = [colour for colour in SERIES if colour != OURS]
DASHES = ("--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))


def draw(experiment: Experiment, section: Section, path: Path) -> None:
    """Write the picture. Equal numbers give equal bytes.

    Raises:
        ImportError: matplotlib is missing.
    """
    with picture(path, f"{experiment.title}: {experiment.y_label}", 3.2) as axes:
        styles = [(OURS, "-", 2.0), *((colour, dash, 1.3) for colour, dash in zip(OTHERS, DASHES, strict=False))]
        for (name, points), (colour, dash, width) in zip(section.series.items(), styles, strict=False):
            times, values = zip(*points, strict=True)
            order = 3 if colour == OURS else 2
            axes.plot(times, values, color=colour, linestyle=dash, linewidth=width, label=name, zorder=order)
        _label(axes, experiment)


def _label(axes: Any, experiment: Experiment) -> None:
    axes.set_xlim(left=0)
    axes.set_xlabel("seconds")
    if experiment.log:
        axes.set_yscale("symlog", linthresh=1)
        axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.set_ylim(bottom=0)
    if experiment.span is not None:
        start, end, label = experiment.span
        axes.axvspan(start, end, color=MUTED, alpha=0.12, linewidth=0)
        axes.annotate(
            label, ((start + end) / 2, 1), xycoords=("data", "axes fraction"), ha="center", va="bottom", color=MUTED
        )
    axes.legend(frameon=False, fontsize=8, ncols=5, loc="upper center", bbox_to_anchor=(0.5, -0.16))
