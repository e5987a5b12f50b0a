"""Looks at a run: one recorder, the views that draw what it has recorded, and a line that shows its progress."""

# The layout. Imports point down only.
#
#     page         the page of a report, and what a notebook shows of statistics and verdicts
#     terminal     a line that changes, in a terminal, a notebook or a log; only here is rich imported
#     recorder     the common part of `report` and `TraceRecorder`
#     charts       the charts of a page, and the colors of all views
#     run          the numbers of a run
#     events       the records of a run as trace events
#     steps        the steps of a record
#     job          the time of the tasks of a Spark query, which its page shows

from __future__ import annotations

from typing import TYPE_CHECKING

from .._account.statistics import Statistics
from .._account.verdict import Verdict

if TYPE_CHECKING:
    from rich.console import Console

    from .terminal import Display

__all__ = ["add_displays", "display_on"]


def add_displays() -> None:
    """Give the classes the method that IPython calls, `_repr_html_`. Their repr stays plain text."""
    for kind in (Statistics, Verdict):
        kind._repr_html_ = _html_of  # type: ignore[union-attr]


def _html_of(value: Statistics | Verdict) -> str:
    from .page import html_of  # noqa: PLC0415 - only a notebook needs it

    return html_of(value)


def display_on(console: Console | None = None) -> Display:
    """Start the display that `progress` uses, to show your own numbers.

    Args:
        console: A rich console. None: a new one on standard error.

    Returns:
        A running display. `show(line)` replaces the line; call it about every `interval` seconds.
        `close(line)` ends the display and leaves a final line.

    Raises:
        ImportError: rich is not installed.
    """
    try:
        from . import terminal  # noqa: PLC0415 - rich is optional
    except ImportError as error:
        raise ImportError("progress needs rich: in a clone, pip install '.[progress]'") from error
    return terminal.display_on(console)
