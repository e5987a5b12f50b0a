"""A progress line for a running operator, in a terminal, a notebook or a log. Needs the extra `progress`."""

from __future__ import annotations

from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Generic, Self, TypeVar

import trio
from trio.lowlevel import checkpoint_if_cancelled, disable_ki_protection, enable_ki_protection

from ._account.statistics import Statistics, gates_and_hedges
from ._operator.results import Results
from ._values.checks import check_int
from ._values.describe import amount, describe, duration, plural
from ._watch import display_on

if TYPE_CHECKING:
    from rich.console import Console

    from ._watch.terminal import Display

__all__ = ["progress", "summary"]

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
        TypeError, ValueError: `results` are not those of an operator, or `total` is not a whole number from 0.

    Example:
        async with unordered_wait(urls, fetch, timeout=5.0) as results:
            with progress(results, total=len(urls), description="fetching") as pages:
                async for page in pages:
                    ...
    """
    if not isinstance(results, Results):
        raise TypeError(
            f"progress takes the results of an operator, got {describe(results)}: give it what `ordered_wait`, for "
            "example, returns, not the source"
        )
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
        _rate(numbers.emitted, seconds),
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
        Outputs, seconds, outputs per second, retries, failures, timeouts, and what `gates_and_hedges` returns, in one
        string.

    Example:
        >>> from trio_asyncio_io.progress import summary
        >>> summary(Statistics(emitted=12345, retried=17, failed=2), 12.3)
        '12,345 outputs in 12.3 s (1,004/s), 17 retried, 2 failed, 0 timed out'
    """
    rate = f" ({_rate(statistics.emitted, seconds)})" if seconds > 0 else ""
    problems = f"{statistics.retried:,} retried, {statistics.failed:,} failed, {statistics.timed_out:,} timed out"
    parts = [
        f"{plural(statistics.emitted, 'output')} in {duration(seconds)}{rate}",
        problems,
        *gates_and_hedges(statistics),
    ]
    return ", ".join(parts)


def _rate(outputs: int, seconds: float) -> str:
    """Outputs per second."""
    return f"{amount(outputs / seconds if seconds > 0 else 0.0)}/s"
