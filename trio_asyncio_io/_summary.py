"""The summary: an operator's numbers as a line of text, and the display that shows such lines during a run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape
from operator import itemgetter
from typing import TYPE_CHECKING

from ._core.statistics import Statistics
from ._core.units import amount, duration, plural

if TYPE_CHECKING:
    from rich.console import Console

    from ._display import Display

__all__ = [
    "Summary",
    "check_rich",
    "clock",
    "display_on",
    "format_outputs",
    "format_rate",
    "gates_and_hedges",
    "summary",
]

# What separates the parts of a summary
PARTS = re.compile(r", (?![^(]*\))")


class Summary(str):
    """A line of text whose parts are separated by commas. A notebook shows them below each other.

    Commas in parentheses do not separate parts.
    """

    __slots__ = ()

    def _repr_html_(self) -> str:
        return f"<div>{'<br>'.join(map(escape, PARTS.split(self)))}</div>"


def summary(statistics: Statistics, seconds: float) -> Summary:
    """Format an operator's statistics as one line. Does not need rich.

    Args:
        statistics: The operator's statistics.
        seconds: The elapsed time, not negative.

    Returns:
        A string: outputs, seconds, outputs per second, retries, failures, timeouts, and what `gates_and_hedges`
        returns.

    Example:
        >>> from trio_asyncio_io.progress import summary
        >>> summary(Statistics(emitted=12345, retried=17, failed=2), 12.3)
        '12,345 outputs in 12.3 s (1,004/s), 17 retried, 2 failed, 0 timed out'
    """
    rate = f" ({format_rate(statistics.emitted, seconds)})" if seconds > 0 else ""
    problems = f"{statistics.retried:,} retried, {statistics.failed:,} failed, {statistics.timed_out:,} timed out"
    parts = [
        f"{format_outputs(statistics.emitted)} in {duration(seconds)}{rate}",
        problems,
        *gates_and_hedges(statistics),
    ]
    return Summary(", ".join(parts))


def gates_and_hedges(statistics: Statistics) -> list[str]:
    """What gates and hedges did with an operator's calls, in words for a line such as `summary`. Does not need rich.

    Args:
        statistics: The operator's statistics.

    Returns:
        The sum of the waits, by the class of the gate; the elements that a gate refused before their first call, and
        why, such as a budget that is used up; how often the service asked for fewer calls; the second calls of `hedged`
        per hundred calls, with the share of them that won; and the calls made for groups. Only what happened.

    Example:
        >>> from trio_asyncio_io.embedding import gates_and_hedges
        >>> waits = {"CircuitBreaker": 3.0, "RateLimit": 38.0}
        >>> numbers = Statistics(gate_wait_seconds=41.0, seconds_by_gate=waits, throttled=212)
        >>> gates_and_hedges(numbers)
        ['gated 41 s (RateLimit 38 s, CircuitBreaker 3 s)', '212 throttled']
        >>> gates_and_hedges(Statistics(completed=1_000, hedged=51, hedges_won=36))
        ['hedged 5.1% (won 71%)']
    """
    parts = []
    if gated := statistics.gate_wait_seconds:
        parts.append(f"gated {duration(gated)}{_gates(statistics.seconds_by_gate)}")
    if statistics.refused or statistics.refusal:
        parts.append(f"{statistics.refused:,} refused" + (f" ({statistics.refusal})" if statistics.refusal else ""))
    if throttled := statistics.throttled:
        parts.append(f"{throttled:,} throttled")
    if hedged := statistics.hedged:
        ended = statistics.completed + statistics.failed + statistics.timed_out + statistics.cancelled
        calls = statistics.groups or ended + statistics.running + statistics.retried - statistics.refused
        parts.append(f"hedged {hedged / max(calls, 1):.1%} (won {statistics.hedges_won / hedged:.0%})")
    if statistics.groups:
        parts.append(f"{statistics.grouped:,} records in {statistics.groups:,} calls")
    return parts


def _gates(seconds_by_gate: Mapping[str, float]) -> str:
    """The gates in parentheses, the one with the longest waits first. A single one needs no seconds of its own."""
    by_wait = sorted(seconds_by_gate.items(), key=itemgetter(1), reverse=True)
    if len(by_wait) <= 1:
        return "".join(f" ({gate})" for gate, _ in by_wait)
    return f" ({', '.join(f'{gate} {duration(seconds)}' for gate, seconds in by_wait)})"


def format_outputs(count: int) -> str:
    """The number of outputs."""
    return plural(count, "output")


def format_rate(outputs: int, seconds: float) -> str:
    """Outputs per second."""
    return f"{amount(outputs / seconds if seconds > 0 else 0.0)}/s"


def clock(seconds: float) -> str:
    """Format seconds as m:ss or h:mm:ss. Does not need rich.

    Args:
        seconds: Not negative; rounded.

    Returns:
        The formatted time.

    Example:
        >>> from trio_asyncio_io.embedding import clock
        >>> clock(75.2), clock(3675)
        ('1:15', '1:01:15')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def display_on(console: Console | None = None) -> Display:
    """Start the display that `progress` uses, to show your own numbers.

    Args:
        console: A rich console. None: a new one on standard error.

    Returns:
        A running display. `show(line, done, total)` replaces the line; call it about every `interval` seconds.
        `close(line)` ends the display and leaves a final line.

    Raises:
        ImportError: rich is not installed.
    """
    check_rich()
    from . import _display  # noqa: PLC0415 - rich is optional

    return _display.display_on(console)


def check_rich() -> None:
    """Raise an `ImportError` with what to install if rich is missing."""
    try:
        import rich  # noqa: F401, PLC0415 - rich is optional
    except ImportError as error:
        raise ImportError("progress needs rich: pip install 'trio-asyncio-io[progress]'") from error
