"""The plot: micro-batches over time, each as long and as high as it took."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._micro_batches import Batch

__all__ = ["plot"]

COLOURS = ("#b4442c", "#2c6e9b")


def plot(found: dict[str, list[Batch]], title: str, path: Path) -> None:
    """Draw the micro-batches of each contender, and write the picture.

    Raises:
        ImportError: matplotlib is missing.
    """
    import matplotlib  # noqa: PLC0415, ICN001 - all but the picture works without it

    matplotlib.use("svg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    plt.rcParams |= {"svg.hashsalt": "micro-batches", "svg.fonttype": "none"}  # the same numbers, the same bytes
    figure, axes = plt.subplots(figsize=(8, 3.2), layout="constrained")
    for (name, batches), colour in zip(found.items(), COLOURS, strict=True):
        axes.bar(
            [each.start for each in batches],
            [each.seconds for each in batches],
            [each.seconds for each in batches],
            align="edge",
            label=name,
            color=colour,
            edgecolor="white",
            linewidth=0.5,
            alpha=0.8,
        )
    axes.set(xlabel="seconds since the first micro-batch", ylabel="its duration in seconds", title=title)
    axes.title.set_fontsize("medium")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
