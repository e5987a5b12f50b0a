"""Rich displays in notebooks for the plain data of the core, which contains no HTML."""

from __future__ import annotations

from ._core.histogram import Histogram
from ._core.snapshot import Snapshot
from ._core.statistics import Statistics
from ._core.verdict import Verdict

__all__ = ["add_displays"]


def add_displays() -> None:
    """Give the classes the method that IPython calls, `_repr_html_`. Their repr stays plain text."""
    for kind in (Histogram, Snapshot, Statistics, Verdict):
        kind._repr_html_ = _html_of  # type: ignore[union-attr]


def _html_of(value: Histogram | Snapshot | Statistics | Verdict) -> str:
    from ._watch.display import html_of  # noqa: PLC0415 - only a notebook needs it

    return html_of(value)
