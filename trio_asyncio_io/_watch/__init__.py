"""Looks at a run: one recorder, and the views that draw what it has recorded."""

# The layout. Imports point down only.
#
#     page         the page of a report, and what a notebook shows of statistics and verdicts
#     recorder     the common part of `report` and `TraceRecorder`
#     charts       the charts of a page, and the colors of all views
#     run          the numbers of a run
#     events       the records of a run as trace events
#     steps        the steps of a record
#     job          the time of the tasks of a Spark query, which its page shows

from __future__ import annotations

from .._account.statistics import Statistics
from .._account.verdict import Verdict

__all__ = ["add_displays"]


def add_displays() -> None:
    """Give the classes the method that IPython calls, `_repr_html_`. Their repr stays plain text."""
    for kind in (Statistics, Verdict):
        kind._repr_html_ = _html_of  # type: ignore[union-attr]


def _html_of(value: Statistics | Verdict) -> str:
    from .page import html_of  # noqa: PLC0415 - only a notebook needs it

    return html_of(value)
