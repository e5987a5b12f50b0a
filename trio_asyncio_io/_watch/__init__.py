"""Looks at a run: one recorder, and the views that draw what it has recorded."""

# The layout. Imports point down only.
#
#     display              what a notebook shows of statistics and verdicts
#     page                 a report as a page
#     charts  events       the charts of a page; the records of a run as trace events
#     recorder             the common part of `report` and `TraceRecorder`
#     run  steps  svg      the numbers of a run; the steps of one record; the colors and elements of all drawings
#     job                  the time of the tasks of a Spark query, which its page shows

from __future__ import annotations

from .._account.statistics import Statistics
from .._account.verdict import Verdict

__all__ = ["add_displays"]


def add_displays() -> None:
    """Give the classes the method that IPython calls, `_repr_html_`. Their repr stays plain text."""
    for kind in (Statistics, Verdict):
        kind._repr_html_ = _html_of  # type: ignore[union-attr]


def _html_of(value: Statistics | Verdict) -> str:
    from .display import html_of  # noqa: PLC0415 - only a notebook needs it

    return html_of(value)
