"""What a notebook shows of statistics, histograms, verdicts, snapshots and reports: HTML for light and dark themes."""

from __future__ import annotations

from dataclasses import fields
from functools import singledispatch
from html import escape
from itertools import islice
from pathlib import Path

from .._account.histogram import Histogram
from .._account.statistics import Statistics
from .._account.verdict import Verdict
from .._core.snapshot import Snapshot, SnapshotElement
from .._values.describe import amount, describe, duration, plural, printable
from .charts import latency_chart
from .page import quantiles, table, times

__all__ = ["frame_of", "html_of"]

# The colors of texts are the notebook's. Those of bars and lines can be seen on light and on dark
STYLE = """<style>
.trio-asyncio-io svg{display:block;width:calc(100% - 5rem);max-width:48rem;margin-left:4rem;overflow:visible}
.trio-asyncio-io :is(th,td){text-align:left}
.trio-asyncio-io text{font-size:12px;fill:currentColor}
.trio-asyncio-io .grid{stroke:currentColor;opacity:.2}
.trio-asyncio-io .bar{fill:#2f86c1}
.trio-asyncio-io .column{fill:transparent}
.trio-asyncio-io .mark{stroke:#c8561b;stroke-width:1.5;stroke-dasharray:5 4}
</style>"""

MAX_ELEMENTS = 10
FRAME_HEIGHT = 600

COUNTS = tuple(each.name for each in fields(Statistics) if each.type == "int")


@singledispatch
def html_of(value: object) -> str:
    """The display of a value."""
    raise TypeError(f"the value must be a Histogram, Snapshot, Statistics or Verdict, got {describe(value)}")


@html_of.register
def _(histogram: Histogram) -> str:
    chart = latency_chart(histogram)
    return _block(STYLE + chart if chart else "", quantiles({plural(histogram.count, "duration"): histogram}))


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
