"""The page of a report, one HTML file without scripts, and what a notebook shows: for light and dark themes."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import fields
from datetime import UTC, datetime
from html import escape
from importlib import metadata
from importlib.resources import files
from math import inf
from pathlib import Path

import trio

from .._account.histogram import Histogram
from .._account.statistics import Statistics, by_wait
from .._account.verdict import Verdict
from .._values.describe import amount, duration, plural, printable
from .charts import QUANTILES, latency_chart, over_time, style_sheet
from .run import Failures, Run

# The page loads nothing and runs no script, whatever is in it
POLICY = "default-src 'none'; style-src 'unsafe-inline'"

NO_RUN = (
    "No operator has run with this observer. In Spark, run the action inside the block of the report, and use a path "
    "in a directory that all executors reach."
)


def page(run: Run, *, tasks: int = 0) -> str:
    """The page.

    Args:
        run: The run.
        tasks: The number of Spark tasks of the run; 0 outside Spark.
    """
    # Not before: workers may have the packages without other files than modules, and write no page
    style = style_sheet(":root", files("trio_asyncio_io._watch").joinpath("page.css").read_text("utf-8"))
    body = "\n".join(_sections(run, tasks))
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(run.name)}: report</title>\n"
        f"<style>{style}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _sections(run: Run, tasks: int) -> Iterator[str]:
    yield f"<h1>{escape(run.name)}</h1>"
    yield _when(run, tasks) if run.began else f"<p>{NO_RUN}</p>"
    yield _cards(run)
    yield from _section("What limited it", _verdicts(run, "tasks" if tasks else "runs"))
    yield from _section("Over time", _charts_over_time(run))
    yield from _section("Latency", _latency(run))
    yield from _section("Gates", _gates(run))
    yield from _section("What went wrong", _failures(run))
    yield from _section("The slowest records", _slowest(run))
    yield from _section("Options", table(("Option", "Value"), run.options.items()))
    versions = f"trio-asyncio-io {_version()} · Trio {trio.__version__} · Python {platform.python_version()}"
    yield f"<footer>{versions}</footer>"


def _section(title: str, content: str) -> Iterator[str]:
    if content:
        yield f"<section><h2>{escape(title)}</h2>\n{content}</section>"


def _when(run: Run, tasks: int) -> str:
    began = datetime.fromtimestamp(run.began, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    of_tasks = f" in {plural(tasks, 'task')}" if tasks else ""
    failed = " class=failed" if run.end.startswith("failed") else ""
    end = f" · <span{failed}>{escape(run.end)}</span>" if run.end else ""
    return f'<p class="soft">{began} · {duration(run.seconds)}{of_tasks}{end}</p>'


def _cards(run: Run) -> str:
    numbers = run.statistics
    ended = numbers.completed + numbers.failed + numbers.timed_out
    if not ended:
        return ""
    median, _, p99 = quantiles(numbers.latency, numbers.longest_seconds)
    cards = {
        "outputs": amount(numbers.emitted),
        "outputs per second": amount(numbers.emitted / run.seconds) if run.seconds else "0",
        "calls in flight, at most": amount(max([numbers.peak_running, *run.series.running()])),
        "median latency": median,
        "99th percentile": p99,
        "failed": _share(numbers.failed, ended),
        "timed out": _share(numbers.timed_out, ended),
        "retries": amount(numbers.retried),
    }
    if numbers.refused:
        cards["refused by a gate"] = _share(numbers.refused, ended)
    parts = [f'<div class="card"><b>{value}</b><span class="soft">{name}</span></div>' for name, value in cards.items()]
    return f'<div class="cards">{"".join(parts)}</div>'


def _share(count: int, ended: int) -> str:
    return f"{count / ended:.2%}" if count else "0"


def _verdicts(run: Run, runs: str) -> str:
    """The most frequent verdict, in the words of the first run that has it, and the time of all tasks."""
    verdicts = run.verdicts
    if not verdicts:
        return ""
    [(limit, count), *_] = Counter(verdict.limit for verdict in verdicts).most_common()
    verdict = run.times.applied_to(next(each for each in verdicts if each.limit == limit))
    share = f"{count} of {len(verdicts)} {runs} have this limit. The numbers are those of one of them."
    note = share if len(verdicts) > 1 else ""
    sentences = "".join(f"<p>{escape(sentence)}</p>" for sentence in verdict.sentences)
    return f'<div class="verdict">{sentences}<p><b>{escape(verdict.advice)}</b></p><p class="soft">{note}</p></div>'


def _charts_over_time(run: Run) -> str:
    series = run.series
    failed = series.rates(series.failed) if series.failed else []
    return (
        _figure("Outputs per second", over_time("outputs per second", series.rates(series.received), series.width))
        + _figure("Calls in flight", over_time("calls in flight", series.running(), series.width, run.capacity))
        + _figure("Failed calls and timeouts per second", over_time("failed calls per second", failed, series.width))
    )


def _latency(run: Run) -> str:
    numbers = run.statistics
    chart = latency_chart(numbers.latency, numbers.longest_seconds)
    return _figure("Calls by latency, on a logarithmic axis", chart) + times(numbers)


def _gates(run: Run) -> str:
    rows = [(gate, duration(seconds)) for gate, seconds in by_wait(run.statistics)]
    return table(("Gate", "Waits of all calls"), rows, numbers=(1,))


def times(statistics: Statistics) -> str:
    """A table of the durations of calls and waits. The longest call is exact, the quantiles come from a sample."""
    longest = statistics.longest_seconds
    waits = {
        "wait for a slot": statistics.slot_wait,
        "wait for a gate": statistics.gate_wait,
        "wait for the output order": statistics.head_wait,
    }
    rows = [[name, *quantiles(histogram), ""] for name, histogram in waits.items() if histogram.count]
    if statistics.latency.count:
        rows.insert(0, ["a record, with all its calls", *quantiles(statistics.latency, longest), duration(longest)])
    return table(("", *QUANTILES, "longest"), rows, numbers=(1, 2, 3, 4))


def quantiles(histogram: Histogram, longest: float = inf) -> list[str]:
    """The quantiles of a histogram, at most `longest`: the middle of a bucket may be above the longest duration."""
    return [duration(min(histogram.quantile(share), longest)) for share in QUANTILES.values()]


def _failures(run: Run) -> str:
    if not run.failures:
        return "<p>Nothing failed and nothing timed out.</p>" if run.statistics.completed else ""
    ordered = sorted(run.failures.items(), key=lambda item: (-item[1].attempts, item[0]))
    return "".join(_failures_of(kind, found) for kind, found in ordered)


def _failures_of(kind: str, found: Failures) -> str:
    lost = f"{plural(found.records, 'record')} without a result" if found.records else "all records have a result"
    # A record has no failed call of a type if a gate has refused it, or if another attempt would be too late
    counts = f"{plural(found.attempts, 'failed call')}, {lost}"
    examples = [f"<li>{escape(record)}: <code>{escape(text)}</code></li>" for text, record in found.examples.items()]
    return f'<h3>{escape(kind)}</h3>\n<p class="soft">{counts}</p>\n<ul>{"".join(examples)}</ul>\n'


def _slowest(run: Run) -> str:
    rows = [(each.label, duration(each.seconds), str(each.attempts), each.outcome) for each in reversed(run.slowest)]
    return table(("Record", "Time", "Attempts", "Outcome"), rows, numbers=(1, 2))


def _version() -> str:
    try:
        return metadata.version("trio-asyncio-io")
    except metadata.PackageNotFoundError:  # on PYTHONPATH, not installed
        return "(not installed)"


def _figure(caption: str, svg: str) -> str:
    return f"<figure><figcaption>{caption}</figcaption>{svg}</figure>" if svg else ""


def table(header: Iterable[str], rows: Iterable[Iterable[str]], *, numbers: tuple[int, ...] = ()) -> str:
    """A table; empty if there are no rows. The columns with these positions are aligned to the right."""
    lines = "".join(_row("td", row, numbers) for row in rows)
    head = _row("th", header, numbers)
    return f'<div class="wide"><table><thead>{head}</thead><tbody>{lines}</tbody></table></div>' if lines else ""


def _row(tag: str, cells: Iterable[str], numbers: tuple[int, ...]) -> str:
    parts = [
        f"<{tag}{' class=number' if column in numbers else ''}>{escape(cell)}</{tag}>"
        for column, cell in enumerate(cells)
    ]
    return f"<tr>{''.join(parts)}</tr>"


# In a notebook

FRAME_HEIGHT = 600  # pixels

COUNTS = tuple(each.name for each in fields(Statistics) if each.type == "int")


def html_of(value: Statistics | Verdict) -> str:
    """The display of a value."""
    return _of_statistics(value) if isinstance(value, Statistics) else _of_verdict(value)


def _of_statistics(statistics: Statistics) -> str:
    counts = {name.replace("_", " "): getattr(statistics, name) for name in COUNTS}
    rows = [(name, amount(count)) for name, count in counts.items() if count]
    rows += [(f"gated by {gate}", duration(seconds)) for gate, seconds in by_wait(statistics)]
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
