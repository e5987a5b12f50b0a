"""The page of a report: one HTML file without scripts."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from html import escape
from importlib import metadata
from operator import itemgetter

import trio

from .._core.histogram import Histogram
from .._core.verdict import Verdict
from ._charts import failures_chart, latency_chart, running_chart, throughput_chart
from ._run import Failures, Run
from ._style import STYLE
from ._units import amount, duration, plural

__all__ = ["page"]

# The page loads nothing and runs no script, whatever is in it
POLICY = "default-src 'none'; style-src 'unsafe-inline'"

NO_RUN = "No operator has run with this observer."


def page(run: Run, *, tasks: int = 0, note: str = "") -> str:
    """The page.

    Args:
        run: What it is about.
        tasks: The number of Spark tasks of the run; 0 outside Spark.
        note: A sentence in place of the default one, if there was no run.
    """
    body = "\n".join(_sections(run, tasks, note or NO_RUN))
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(run.name)}: report</title>\n"
        f"<style>{STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _sections(run: Run, tasks: int, note: str) -> Iterator[str]:
    yield f"<h1>{escape(run.name)}</h1>"
    yield _when(run, tasks) if run.began else f"<p>{escape(note)}</p>"
    yield _cards(run)
    yield from _section("What limited it", _verdicts(run.verdicts, "tasks" if tasks else "runs"))
    yield from _section("Over time", _charts_over_time(run))
    yield from _section("Latency", _latency(run))
    yield from _section("Gates", _gates(run))
    yield from _section("What went wrong", _failures(run))
    yield from _section("The slowest records", _slowest(run))
    yield from _section("Options", _table(("Option", "Value"), run.options.items()))
    yield f"<footer>{_versions()}</footer>"


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
    cards = {
        "outputs": amount(numbers.emitted),
        "outputs per second": amount(numbers.emitted / run.seconds) if run.seconds else "0",
        "calls in flight, at most": amount(max([numbers.peak_running, *run.series.running()])),
        "median latency": duration(numbers.latency.p50),
        "99th percentile": duration(numbers.latency.p99),
        "failed": _share(numbers.failed, ended),
        "timed out": _share(numbers.timed_out, ended),
        "retries": amount(numbers.retried),
    }
    parts = [f'<div class="card"><b>{value}</b><span class="soft">{name}</span></div>' for name, value in cards.items()]
    return f'<div class="cards">{"".join(parts)}</div>'


def _share(count: int, ended: int) -> str:
    return f"{count / ended:.2%}" if count else "0"


def _verdicts(verdicts: list[Verdict], runs: str) -> str:
    """The most frequent verdict, in the words of the first run that has it."""
    if not verdicts:
        return ""
    [(limit, count), *_] = Counter(verdict.limit for verdict in verdicts).most_common()
    verdict = next(each for each in verdicts if each.limit == limit)
    note = f"So in {count} of {len(verdicts)} {runs}; this is one of them." if len(verdicts) > 1 else ""
    sentences = "".join(f"<p>{escape(sentence)}</p>" for sentence in verdict.sentences)
    return f'<div class="verdict">{sentences}<p><b>{escape(verdict.advice)}</b></p><p class="soft">{note}</p></div>'


def _charts_over_time(run: Run) -> str:
    return "".join(
        [
            _figure("Outputs per second", throughput_chart(run.series)),
            _figure("Calls in flight, at the end of each interval", running_chart(run.series, run.capacity)),
            _figure("Failed calls and timeouts per second", failures_chart(run.series), "failures"),
        ]
    )


def _latency(run: Run) -> str:
    numbers = run.statistics
    if not numbers.latency.count:
        return ""
    rows = [
        _quantiles("Latency of a call, with its retries", numbers.latency),
        _quantiles("Wait for a slot", numbers.slot_wait),
        _quantiles("Wait for the output order", numbers.head_wait),
    ]
    if numbers.gate_wait.count:
        rows.insert(2, _quantiles("Wait for a gate", numbers.gate_wait))
    figure = _figure("Calls by latency, on a logarithmic axis", latency_chart(numbers.latency))
    return figure + _table(("", "p50", "p95", "p99", "longest"), rows, numbers=(1, 2, 3, 4))


def _gates(run: Run) -> str:
    by_wait = sorted(run.statistics.seconds_by_gate.items(), key=itemgetter(1), reverse=True)
    rows = [(gate, duration(seconds)) for gate, seconds in by_wait]
    return _table(("Gate", "Waits of all calls"), rows, numbers=(1,))


def _quantiles(name: str, histogram: Histogram) -> tuple[str, ...]:
    return (name, *(duration(histogram.quantile(share)) for share in (0.5, 0.95, 0.99, 1.0)))


def _failures(run: Run) -> str:
    if not run.failures:
        return "<p>Nothing failed and nothing timed out.</p>" if run.statistics.completed else ""
    ordered = sorted(run.failures.items(), key=lambda item: (-item[1].attempts, item[0]))
    return "".join(_failures_of(kind, found) for kind, found in ordered)


def _failures_of(kind: str, found: Failures) -> str:
    lost = f"{plural(found.records, 'record')} without a result" if found.records else "all records have a result"
    examples = [f"<li>{escape(record)}: <code>{escape(text)}</code></li>" for text, record in found.examples.items()]
    return (
        f'<h3>{escape(kind)}</h3>\n<p class="soft">{plural(found.attempts, "failed call")}, {lost}</p>\n'
        f"<ul>{''.join(examples)}</ul>\n"
    )


def _slowest(run: Run) -> str:
    rows = [(each.label, duration(each.seconds), str(each.attempts), each.outcome) for each in reversed(run.slowest)]
    return _table(("Record", "Time", "Attempts", "Outcome"), rows, numbers=(1, 2)) if rows else ""


def _versions() -> str:
    return f"trio-asyncio-io {_version()} · Trio {trio.__version__} · Python {platform.python_version()}"


def _version() -> str:
    try:
        return metadata.version("trio-asyncio-io")
    except metadata.PackageNotFoundError:  # on PYTHONPATH, not installed
        return "(not installed)"


def _figure(caption: str, svg: str, name: str = "") -> str:
    kind = f' class="{name}"' if name else ""
    return f"<figure{kind}><figcaption>{escape(caption)}</figcaption>{svg}</figure>" if svg else ""


def _table(header: Iterable[str], rows: Iterable[Iterable[str]], *, numbers: tuple[int, ...] = ()) -> str:
    lines = [_row("th", header, numbers), *(_row("td", row, numbers) for row in rows)]
    return f"<table>{''.join(lines)}</table>" if len(lines) > 1 else ""


def _row(tag: str, cells: Iterable[str], numbers: tuple[int, ...]) -> str:
    parts = [
        f"<{tag}{' class=number' if column in numbers else ''}>{escape(cell)}</{tag}>"
        for column, cell in enumerate(cells)
    ]
    return f"<tr>{''.join(parts)}</tr>"
