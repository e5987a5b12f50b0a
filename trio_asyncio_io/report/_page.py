"""The page of a report: one HTML file without scripts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from html import escape

from .._core.histogram import Histogram
from .._core.verdict import Verdict
from ._charts import amount, duration, latency_chart, running_chart, throughput_chart
from ._run import Run

__all__ = ["page"]

STYLE = """
:root{color-scheme:light dark;--bg:#fff;--fg:#1f2328;--soft:#59636e;--line:#d0d7de;--card:#f6f8fa;--bar:#0072b2;
--mark:#b3470a}
@media (prefers-color-scheme:dark){:root{--bg:#0d1117;--fg:#e6edf3;--soft:#9198a1;--line:#30363d;--card:#161b22;
--bar:#56b4e9;--mark:#ff8a4c}}
body{margin:0 auto;max-width:60rem;padding:1.5rem 1rem 4rem;background:var(--bg);color:var(--fg);
font:16px/1.5 system-ui,sans-serif}
h1{margin:0;font-size:1.7rem}
h2{margin:2.2rem 0 .6rem;font-size:1.15rem}
.soft{color:var(--soft)}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(9rem,1fr));gap:.6rem;margin:1.2rem 0}
.card{padding:.6rem .8rem;background:var(--card);border:1px solid var(--line);border-radius:.5rem}
.card b{display:block;font-size:1.35rem}
.verdict{padding:.8rem 1rem;background:var(--card);border-left:4px solid var(--bar);border-radius:.3rem}
.verdict p{margin:.3rem 0}
figure{margin:0 0 1rem}
figcaption{color:var(--soft)}
svg{display:block;width:100%;height:auto}
svg text{font:12px system-ui,sans-serif;fill:var(--soft)}
@media (max-width:40rem){svg text{font-size:20px}}
svg .grid{stroke:var(--line)}
svg .bar{fill:var(--bar);shape-rendering:crispEdges}
svg .mark{stroke:var(--mark);stroke-width:1.5;stroke-dasharray:5 4}
svg .mark-name{fill:var(--mark)}
.wide{overflow-x:auto}
table{border-collapse:collapse;width:100%}
th,td{padding:.3rem .6rem;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}
th{font-weight:600}
td.number,th.number{text-align:right;font-variant-numeric:tabular-nums}
td{min-width:4rem;overflow-wrap:break-word}
td.number{white-space:nowrap}
"""


def page(run: Run, *, tasks: int = 0) -> str:
    """The page.

    Args:
        run: What it is about.
        tasks: The number of Spark tasks of the run; 0 outside Spark.
    """
    body = "\n".join(_sections(run, tasks))
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(run.name)}: report</title>\n"
        f"<style>{STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _sections(run: Run, tasks: int) -> Iterator[str]:
    yield _heading(run, tasks)
    yield _cards(run)
    yield from _section("What limited it", _verdicts(run.verdicts))
    yield from _section("Over time", _charts_over_time(run))
    yield from _section("Latency", _latency(run))
    yield from _section("What went wrong", _failures(run))
    yield from _section("The slowest records", _slowest(run))
    yield from _section("Options", _table(("Option", "Value"), run.options.items()))


def _section(title: str, content: str) -> Iterator[str]:
    if content:
        yield f"<section><h2>{escape(title)}</h2>\n{content}</section>"


def _heading(run: Run, tasks: int) -> str:
    if not run.began:
        return f"<h1>{escape(run.name)}</h1>\n<p>No operator has run with this observer.</p>"
    began = datetime.fromtimestamp(run.began, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    of_tasks = f", {amount(tasks)} {'task' if tasks == 1 else 'tasks'}" if tasks else ""
    return f'<h1>{escape(run.name)}</h1>\n<p class="soft">{began}, {duration(run.seconds)}{of_tasks}</p>'


def _cards(run: Run) -> str:
    numbers = run.statistics
    ended = numbers.completed + numbers.failed + numbers.timed_out
    if not ended:
        return ""
    cards = {
        "outputs": amount(numbers.emitted),
        "outputs per second": amount(numbers.emitted / run.seconds) if run.seconds else "0",
        "median latency": duration(numbers.latency.p50),
        "99th percentile": duration(numbers.latency.p99),
        "failed or timed out": f"{(numbers.failed + numbers.timed_out) / ended:.2%}",
        "retries": amount(numbers.retried),
    }
    parts = [f'<div class="card"><b>{value}</b><span class="soft">{name}</span></div>' for name, value in cards.items()]
    return f'<div class="cards">{"".join(parts)}</div>'


def _verdicts(verdicts: list[Verdict]) -> str:
    """The most frequent verdict, in the words of the first task that has it."""
    if not verdicts:
        return ""
    [(limit, count), *_] = Counter(verdict.limit for verdict in verdicts).most_common()
    verdict = next(each for each in verdicts if each.limit == limit)
    note = (
        f'<p class="soft">So in {count} of {len(verdicts)} tasks; this is one of them.</p>' if len(verdicts) > 1 else ""
    )
    sentences = "".join(f"<p>{escape(sentence)}</p>" for sentence in verdict.sentences)
    return f'<div class="verdict">{sentences}<p><b>{escape(verdict.advice)}</b></p>{note}</div>'


def _charts_over_time(run: Run) -> str:
    charts = {
        "Outputs per second": throughput_chart(run.series),
        "Calls in flight, at the end of each bin": running_chart(run.series, _capacity(run)),
    }
    return "".join(_figure(caption, svg) for caption, svg in charts.items() if svg)


def _capacity(run: Run) -> int | None:
    """The capacity, if one operator has run. Of several tasks, not all need run at once."""
    return int(run.options["capacity"].replace(",", "")) if len(run.verdicts) == 1 else None


def _latency(run: Run) -> str:
    numbers = run.statistics
    rows = [
        _quantiles("latency of a call, with its retries", numbers.latency),
        _quantiles("wait for a slot", numbers.slot_wait),
        _quantiles("wait for the output order", numbers.head_wait),
    ]
    if numbers.gate_wait.count:
        rows.insert(2, _quantiles("wait for a gate", numbers.gate_wait))
    if not numbers.latency.count:
        return ""
    chart = latency_chart(numbers.latency)
    figure = _figure("Calls by latency, on a logarithmic axis", chart) if chart else ""
    return figure + _table(("", "p50", "p95", "p99", "longest"), rows, numeric=True)


def _quantiles(name: str, histogram: Histogram) -> tuple[str, ...]:
    return (name, *(duration(histogram.quantile(share)) for share in (0.5, 0.95, 0.99, 1.0)))


def _failures(run: Run) -> str:
    if not run.failures:
        return "<p>Nothing failed and nothing timed out.</p>" if run.statistics.completed else ""
    rows = [
        (kind, amount(found.attempts), amount(found.records), "\n".join(found.examples))
        for kind, found in sorted(run.failures.items(), key=lambda item: -item[1].attempts)
    ]
    return _table(("Type", "Failed calls", "Records without a result", "Examples"), rows)


def _slowest(run: Run) -> str:
    rows = [(each.label, duration(each.seconds), str(each.attempts), each.outcome) for each in reversed(run.slowest)]
    return _table(("Record", "Time", "Attempts", "Outcome"), rows) if rows else ""


def _figure(caption: str, svg: str) -> str:
    return f"<figure><figcaption>{escape(caption)}</figcaption>{svg}</figure>"


def _table(header: Iterable[str], rows: Iterable[Iterable[str]], *, numeric: bool = False) -> str:
    lines = [_row("th", header, numeric=numeric), *(_row("td", row, numeric=numeric) for row in rows)]
    return f'<div class="wide"><table>{"".join(lines)}</table></div>' if len(lines) > 1 else ""


def _row(tag: str, cells: Iterable[str], *, numeric: bool) -> str:
    parts = [
        f"<{tag}{' class=number' if numeric and number else ''}>{escape(cell).replace(chr(10), '<br>')}</{tag}>"
        for number, cell in enumerate(cells)
    ]
    return f"<tr>{''.join(parts)}</tr>"
