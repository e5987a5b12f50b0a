"""What a notebook shows of statistics, verdicts, snapshots and reports: HTML for light and dark themes."""

from __future__ import annotations

from dataclasses import fields
from functools import singledispatch
from html import escape
from itertools import islice
from pathlib import Path

from .._account.statistics import Statistics
from .._account.verdict import Verdict
from .._core.snapshot import Snapshot, SnapshotElement
from .._values.describe import amount, describe, duration, plural, printable
from .page import table, times

__all__ = ["frame_of", "html_of"]

MAX_ELEMENTS = 10
FRAME_HEIGHT = 600

COUNTS = tuple(each.name for each in fields(Statistics) if each.type == "int")


@singledispatch
def html_of(value: object) -> str:
    """The display of a value."""
    raise TypeError(f"the value must be a Snapshot, Statistics or Verdict, got {describe(value)}")


@html_of.register
def _(statistics: Statistics) -> str:
    counts = {name.replace("_", " "): getattr(statistics, name) for name in COUNTS}
    rows = [(name, amount(count)) for name, count in counts.items() if count]
    rows += [(f"gated by {gate}", duration(seconds)) for gate, seconds in statistics.seconds_by_gate.items()]
    texts = {"refusal": statistics.refusal, "finding": statistics.finding}
    rows += [(name, text) for name, text in texts.items() if text]
    return _block(table(("", "count"), rows or [("emitted", "0")]), times(statistics))


@html_of.register
def _(verdict: Verdict) -> str:
    sentences = "".join(f"{escape(sentence)}<br>" for sentence in verdict.sentences)
    return _block(f"{sentences}<b>{escape(verdict.advice)}</b>")


@html_of.register
def _(snapshot: Snapshot) -> str:
    rows = [_of_element(each) for each in islice(snapshot.elements, MAX_ELEMENTS)]
    more = len(snapshot) - len(rows)
    return _block(
        f"Snapshot of {plural(len(snapshot), 'element')}; {snapshot.taken:,} were taken from the source.",
        table(("sequence", "element", "results"), rows) if rows else "",
        f"… and {plural(more, 'other')}." if more else "",
    )


def frame_of(page: Path) -> str:
    """The display of a report: its page in a frame of its own, in which no script runs."""
    try:
        text = page.read_text("utf-8")
    except OSError:
        return _block(
            f"The report {escape(printable(str(page)))} does not exist. It is written at the end of its block."
        )
    style = f"width:100%;height:{FRAME_HEIGHT}px;border:0"
    return f'<iframe sandbox srcdoc="{escape(text)}" title="report" style="{style}"></iframe>'


def _of_element(each: SnapshotElement) -> tuple[str, str, str]:
    results = "" if each.results is None else describe(each.results)
    return f"{each.sequence:,}", printable(describe(each.element)), printable(results)


def _block(*parts: str) -> str:
    return f'<div class="trio-asyncio-io">{"".join(parts)}</div>'
