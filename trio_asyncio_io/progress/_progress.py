"""An operator's numbers as a line of text: one that changes while you receive the results, and the summary."""

from __future__ import annotations

from datetime import timedelta
from operator import itemgetter
from types import TracebackType
from typing import TYPE_CHECKING, Generic, Self, TypeVar

import trio
from trio.lowlevel import checkpoint_if_cancelled, disable_ki_protection, enable_ki_protection

from .._account.statistics import Counts, Statistics
from .._operator.results import Results
from .._values.checks import check_int
from .._values.describe import amount, duration, plural

if TYPE_CHECKING:
    from rich.console import Console

    from ._display import Display

R = TypeVar("R")


def progress(
    results: Results[R], *, total: int | None = None, description: str = "", console: Console | None = None
) -> Progress[R]:
    """Show a progress line while you receive the results. A context manager and an async iterator of the results.

    In a terminal, the line is updated in place at most four times a second, in a notebook twice a second, even
    while no results arrive. Elsewhere, as in a file or a CI log, a new line is written every 30 seconds. At the end of
    the block, even after an exception, the line of `summary` remains. A terminal prints other output above the line.

    This uses no task and no thread: the line is updated while your code requests or awaits a result, and not while the
    body of your loop runs. Exceptions and cancellation pass through.

    Args:
        results: The results of `ordered_wait`, `unordered_wait` or `keyed_wait`, or the `output` of an
            `AsyncWaitOperator`.
        total: The number of elements in the source, not negative; adds the percentage of elements that are finished
            (with or without a result) and the remaining time. None: unknown. Ignored as soon as more elements than that
            have finished.
        description: Text before the numbers.
        console: A rich console. None: a new one on standard error; standard output remains yours.

    Returns:
        An object to enter and iterate over. It gives the same outputs as `results`.

    Raises:
        ImportError: rich is not installed. Raised when the block is entered.
        ValueError: `total` is negative.

    Example:
        async with unordered_wait(urls, fetch, timeout=5.0) as results:
            with progress(results, total=len(urls), description="fetching") as pages:
                async for page in pages:
                    ...
    """
    if total is not None:
        check_int("total", total, at_least=0)
    return Progress(results, total, description, console)


class Progress(Generic[R]):
    """The results of an operator, with a progress line. Created by `progress`."""

    def __init__(self, results: Results[R], total: int | None, description: str, console: Console | None) -> None:
        self._results = results
        self._total = total
        self._prefix = f"{description}: " if description else ""
        self._console = console
        self._display: Display | None = None

    def __enter__(self) -> Self:
        self._display = display_on(self._console)
        self._started = trio.current_time()
        self._due = self._started + self._display.interval
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._display is not None
        self._display.close(self._prefix + summary(self._results.statistics(), self._seconds()))
        self._display = None

    def __aiter__(self) -> Self:
        return self

    @enable_ki_protection
    async def __anext__(self) -> R:
        if self._display is None:
            raise RuntimeError("enter it first: `with progress(results) as rows:`")
        await checkpoint_if_cancelled()
        try:
            if trio.current_time() >= self._due:
                self._show(self._display)
            return self._results.receive_nowait()
        except trio.WouldBlock:
            pass
        except trio.EndOfChannel:
            raise StopAsyncIteration from None
        return await self._wait(self._display)

    async def _wait(self, display: Display) -> R:
        """Receive the next output, and update the line whenever that is due."""
        while True:
            with trio.move_on_at(self._due):
                return await anext(self._results)
            self._show(display)

    @disable_ki_protection
    def _show(self, display: Display) -> None:
        numbers = self._results.statistics()
        display.show(self._prefix + _line(numbers, self._total, self._seconds()))
        self._due = trio.current_time() + display.interval

    def _seconds(self) -> float:
        return trio.current_time() - self._started


def _line(numbers: Statistics, total: int | None, seconds: float) -> str:
    """Format the current numbers; without counts of retries, failures and timeouts that are 0, gates and hedges."""
    problems = {"retried": numbers.retried, "failed": numbers.failed, "timed out": numbers.timed_out}
    share = left = ""
    done = numbers.done
    if total is not None and done <= total:
        share = f"{done * 100 // total}% of {total:,}" if total else "100% of 0"
        left = f"eta {timedelta(seconds=round(seconds / done * (total - done)))}" if done else ""
    parts = [
        plural(numbers.emitted, "output"),
        share,
        format_rate(numbers.emitted, seconds),
        str(timedelta(seconds=round(seconds))),
        left,
        f"{numbers.running:,} running",
        f"{numbers.buffered:,} buffered",
        *(f"{count:,} {problem}" for problem, count in problems.items() if count),
        *gates_and_hedges(numbers),
    ]
    return "  ".join(filter(None, parts))


def summary(statistics: Statistics, seconds: float) -> str:
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
        f"{plural(statistics.emitted, 'output')} in {duration(seconds)}{rate}",
        problems,
        *gates_and_hedges(statistics),
    ]
    return ", ".join(parts)


def gates_and_hedges(statistics: Counts) -> list[str]:
    """What gates and hedges did with an operator's calls, in words for a line such as `summary`. Does not need rich.

    Args:
        statistics: The operator's statistics.

    Returns:
        The sum of the waits for each gate; the elements that a gate refused before their first call, and
        why, such as a budget that is used up; how often the service requested fewer calls; what `capacity="auto"` has
        found; the second calls of `hedged` per hundred calls, with the share of them that won; and the calls made for
        groups. Only what happened.

    Example:
        >>> from trio_asyncio_io.integration import gates_and_hedges
        >>> waits = {"CircuitBreaker": 3.0, "RateLimit": 38.0}
        >>> numbers = Statistics(seconds_by_gate=waits, throttled=212)
        >>> gates_and_hedges(numbers)
        ['gated by RateLimit 38 s and CircuitBreaker 3 s', '212 throttled']
        >>> gates_and_hedges(Statistics(completed=1_000, hedged=51, hedges_won=36))
        ['hedged 5.1% (won 71%)']
    """
    parts = []
    if statistics.seconds_by_gate:
        by_wait = sorted(statistics.seconds_by_gate.items(), key=itemgetter(1), reverse=True)
        parts.append(f"gated by {' and '.join(f'{gate} {duration(seconds)}' for gate, seconds in by_wait)}")
    if statistics.refused or statistics.refusal:
        parts.append(f"{statistics.refused:,} refused" + (f" ({statistics.refusal})" if statistics.refusal else ""))
    if throttled := statistics.throttled:
        parts.append(f"{throttled:,} throttled")
    if statistics.finding:
        parts.append(statistics.finding)
    if hedged := statistics.hedged:
        ended = statistics.completed + statistics.failed + statistics.timed_out + statistics.cancelled
        calls = statistics.groups or ended + statistics.running + statistics.retried - statistics.refused
        parts.append(f"hedged {hedged / max(calls, 1):.1%} (won {statistics.hedges_won / hedged:.0%})")
    if statistics.groups:
        parts.append(f"{statistics.grouped:,} records in {statistics.groups:,} calls")
    return parts


def format_rate(outputs: int, seconds: float) -> str:
    """Outputs per second."""
    return f"{amount(outputs / seconds if seconds > 0 else 0.0)}/s"


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
        from . import _display  # noqa: PLC0415 - rich is optional
    except ImportError as error:
        raise ImportError("progress needs rich: in a clone, pip install '.[progress]'") from error
    return _display.display_on(console)
