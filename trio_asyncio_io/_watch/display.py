"""What a notebook shows of statistics, verdicts and reports: HTML for light and dark themes."""

from __future__ import annotations

from dataclasses import fields
from html import escape
from pathlib import Path

from .._account.statistics import Statistics
from .._account.verdict import Verdict
from .._values.describe import amount, duration, printable
from .page import table, times

FRAME_HEIGHT = 600

COUNTS = tuple(each.name for each in fields(Statistics) if each.type == "int")


def html_of(value: Statistics | Verdict) -> str:
    """The display of a value."""
    return _of_statistics(value) if isinstance(value, Statistics) else _of_verdict(value)


def _of_statistics(statistics: Statistics) -> str:
    counts = {name.replace("_", " "): getattr(statistics, name) for name in COUNTS}
    rows = [(name, amount(count)) for name, count in counts.items() if count]
    rows += [(f"gated by {gate}", duration(seconds)) for gate, seconds in statistics.seconds_by_gate.items()]
    texts = {"refusal": statistics.refusal, "finding": statistics.finding}
    rows += [(name, text) for name, text in texts.items() if text]
    return table(("", "count"), rows or [("emitted", "0")]) + times(statistics)


def _of_verdict(verdict: Verdict) -> str:
    sentences = "".join(f"{escape(sentence)}<br>" for sentence in verdict.sentences)
    return f"<div>{sentences}<b>{escape(verdict.advice)}</b></div>"


def frame_of(page: Path) -> str:
    """The display of a report: its page in a frame of its own, in which no script runs."""
    try:
        text = page.read_text("utf-8")
    except OSError:
        name = escape(printable(str(page)))
        return f"<div>The report {name} does not exist. It is written at the end of its block.</div>"
    style = f"width:100%;height:{FRAME_HEIGHT}px;border:0"
    return f'<iframe sandbox srcdoc="{escape(text)}" title="report" style="{style}"></iframe>'
