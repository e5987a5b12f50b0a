"""A progress line for a running operator, in a terminal, a notebook or a log. Needs the extra `progress`."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Generic, Self, TypeVar

import trio
from trio.lowlevel import checkpoint_if_cancelled, disable_ki_protection, enable_ki_protection

from ._addresses import publish
from ._core.checks import check_int
from ._core.statistics import Statistics
from ._results import Results
from ._summary import check_rich, clock, display_on, format_outputs, format_rate, gates_and_hedges, summary

if TYPE_CHECKING:
    from rich.console import Console

    from ._display import Display

__all__ = ["progress", "summary"]

R = TypeVar("R")


def progress(
    results: Results[R], *, total: int | None = None, description: str = "", console: Console | None = None
) -> Progress[R]:
    """Show a progress line while you receive the results. A context manager and an async iterator of the results.

    In a terminal, the line is updated in place at most four times a second, in a notebook twice a second, also
    while no results arrive. Elsewhere, as in a file or a CI log, a new line is written every 30 seconds. At the end of
    the block, even after an exception, the line of `summary` remains. A terminal prints other output above the line.

    This uses no task and no thread: the line is updated while your code requests or awaits a result, and not while the
    body of your loop runs. Exceptions and cancellation pass through.

    Args:
        results: The results of `ordered_wait`, `unordered_wait` or `keyed_wait`, or the `output` of an
            `AsyncWaitOperator`.
        total: The number of elements in the source, not negative; adds the percentage of elements that are finished
            (with or without a result), a bar and the remaining time. None: unknown. Ignored as soon as more elements
            than that have finished.
        description: Text before the numbers.
        console: A rich console. None: a new one on standard error; standard output remains yours.

    Returns:
        An object to enter and iterate over. It gives the same outputs as `results`.

    Raises:
        ImportError: rich is not installed.
        ValueError: `total` is negative.

    Example:
        async with unordered_wait(urls, fetch, timeout=5.0) as results:
            with progress(results, total=len(urls), description="fetching") as pages:
                async for page in pages:
                    ...
    """
    if total is not None:
        check_int("total", total, at_least=0)
    check_rich()
    return Progress(results, total, description, console)


class Progress(Generic[R]):
    """The results of an operator, with a progress line. Created by `progress`."""

    def __init__(self, results: Results[R], total: int | None, description: str, console: Console | None) -> None:
        self._results = results
        self._total = total
        self._description = description
        self._console = console
        self._display: Display | None = None

    def __enter__(self) -> Self:
        self._started = trio.current_time()
        self._display = display_on(self._console)
        self._due = self._started + self._display.interval
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._display is not None
        self._display.close(self._described(": ", summary(self._results.statistics(), self._seconds())))
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
        done = numbers.completed + numbers.failed + numbers.timed_out
        total = None if self._total is None or done > self._total else self._total
        display.show(self._described("  ", _line(numbers, done, total, self._seconds())), done, total)
        self._due = trio.current_time() + display.interval

    def _seconds(self) -> float:
        return trio.current_time() - self._started

    def _described(self, separator: str, text: str) -> str:
        return f"{self._description}{separator}{text}" if self._description else text


def _line(numbers: Statistics, done: int, total: int | None, seconds: float) -> str:
    """Format the current numbers; without counts of retries, failures and timeouts that are 0, gates and hedges."""
    problems = {"retried": numbers.retried, "failed": numbers.failed, "timed out": numbers.timed_out}
    share, left = ([], []) if total is None else _share_and_time_left(done, total, seconds)
    parts = [
        format_outputs(numbers.emitted),
        *share,
        format_rate(numbers.emitted, seconds),
        clock(seconds),
        *left,
        f"{numbers.running:,} running",
        f"{numbers.buffered:,} buffered",
        *(f"{count:,} {problem}" for problem, count in problems.items() if count),
        *gates_and_hedges(numbers),
    ]
    return "  ".join(parts)


def _share_and_time_left(done: int, total: int, seconds: float) -> tuple[list[str], list[str]]:
    share = f"{done * 100 // total}% of {total:,}" if total else "100% of 0"
    left = clock(seconds / done * (total - done)) if done else "-:--"
    return [share], [f"eta {left}"]


publish(globals())
