"""Helpers for people who test their own functions: a scripted function, and a recorder around any function.

Both live on Trio's clock. Under `trio.testing.MockClock` (pytest-trio's fixture `autojump_clock`) an hour takes no
time, and instants are exact: compare them with `==`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

import trio

from ._core.checks import check_seconds
from ._function import Function, Wrapper, as_function

__all__ = ["Call", "Recorder", "Scripted", "Step", "fails_first"]

T = TypeVar("T")
R = TypeVar("R")

_ECHO: Any = object()


@dataclass(frozen=True, slots=True)
class Step:
    """What one call does: wait, and then raise or return.

    Args:
        latency: Seconds until the call ends, not negative. 0.0 is one checkpoint; with `math.inf` the call
            ends only when it is cancelled.
        result: What the call returns; unless given, the value that it was called with.
        error: What the call raises instead: an exception, or a type for a new one each time.

    Raises:
        ValueError: `latency` is negative or NaN.
    """

    latency: float = 0.0
    result: Any = _ECHO
    error: BaseException | type[BaseException] | None = None

    def __post_init__(self) -> None:
        check_seconds("latency", self.latency)


Steps: TypeAlias = Step | Sequence[Step]


def fails_first(attempts: int, error: BaseException | type[BaseException], then: Step | None = None) -> list[Step]:
    """The steps of a call that raises `error` for the first `attempts` times, at once, and then does `then`.

    Args:
        attempts: Calls that fail, at least 0.
        error: What they raise.
        then: What the calls after them do. None: they return their value at once.

    Returns:
        A list of steps, for `Scripted`.
    """
    return [Step(error=error)] * attempts + [then or Step()]


class Scripted(Generic[T]):
    """An async function that does what its script says.

    Args:
        values: Value -> its step, or a sequence of them: the n-th call with this value does the n-th, and the
            last one is for all calls after it.
        calls: The steps of the first calls, whatever their values; after them `values` decides.
        default: What a call does of which the script says nothing. None: it returns its value at once.

    Cancellation: a waiting call ends at once, and its step counts as done.

    Example:
        >>> lookup = Scripted({"slow": Step(30.0), "flaky": fails_first(2, OSError("busy"))}, default=Step(0.01))
        >>> trio.run(lookup, "quick")
        'quick'
    """

    def __init__(
        self, values: Mapping[T, Steps] | None = None, *, calls: Sequence[Step] = (), default: Step | None = None
    ) -> None:
        self._values = dict(values or {})
        self._calls = list(calls)
        self._default = default or Step()
        self._called = 0
        self._called_with: dict[T, int] = {}

    async def __call__(self, *arguments: T) -> Any:
        """Do the step whose turn it is. Several arguments, as those of a UDF's columns, are a tuple to the script."""
        value: Any = arguments[0] if len(arguments) == 1 else arguments
        step = self._next_step(value)
        await trio.sleep(step.latency)
        if step.error is not None:
            raise step.error
        return value if step.result is _ECHO else step.result

    def _next_step(self, value: T) -> Step:
        self._called += 1
        if self._called <= len(self._calls):
            return self._calls[self._called - 1]
        if value not in self._values:
            return self._default
        steps = self._values[value]
        if isinstance(steps, Step):
            return steps
        position = self._called_with.get(value, 0)
        self._called_with[value] = position + 1
        return steps[min(position, len(steps) - 1)]


@dataclass(slots=True)
class Call(Generic[T]):
    """One call that a `Recorder` saw.

    Attributes:
        value: What it was called with.
        started: When, in seconds on Trio's clock.
        ended: When it had ended or, if it was cancelled, unwound; None while it runs.
        cancelled: Whether cancellation ended it.
        result: What it returned; None if it has not.
        error: What it raised, or None.
    """

    value: T
    started: float
    ended: float | None = None
    cancelled: bool = False
    result: Any = None
    error: Exception | None = None


class Recorder(Wrapper, Generic[T, R]):
    """An async function that passes its calls on to another one and keeps count of them.

    Args:
        function: An async callable, or an `AsyncFunction`, which it is then opened and closed with. Called with
            several arguments, it keeps them as a tuple.

    Attributes:
        calls: Every call so far, in the order in which they started.
        running: Calls running now. 0 after an operator's block, however it ended.
        peak_running: Most calls that ever ran at once.
        cancelled: Calls that cancellation has ended.

    Example:
        >>> async def main():
        ...     recorder = Recorder(Scripted(default=Step(1.0)))
        ...     async with ordered_wait("abcd", recorder, capacity=2, timeout=5.0) as results:
        ...         assert [result async for result in results] == ["a", "b", "c", "d"]
        ...     assert recorder.peak_running == 2
        ...     assert [call.started for call in recorder.calls] == [0.0, 0.0, 1.0, 1.0]
        >>> trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
    """

    def __init__(self, function: Function[T, R]) -> None:
        self.function = function
        inner = as_function(function)
        self._invoke: Callable[..., Awaitable[R]] = inner.invoke
        for name in ("open", "close", "timeout", "flush"):  # what an operator looks for, and only what is there
            if callable(method := getattr(inner, name, None)):
                setattr(self, name, method)
        self.calls: list[Call[T]] = []
        self.running = 0
        self.peak_running = 0
        self.cancelled = 0

    @property
    def values(self) -> list[T]:
        """What it was called with, in the order of the calls."""
        return [call.value for call in self.calls]

    async def __call__(self, *arguments: T) -> R:
        """Call the function."""
        return await self.invoke(*arguments)

    async def invoke(self, *arguments: Any) -> R:
        """Call the function, as an operator does it."""
        call: Call[Any] = Call(arguments[0] if len(arguments) == 1 else arguments, trio.current_time())
        self.calls.append(call)
        self.running += 1
        self.peak_running = max(self.peak_running, self.running)
        try:
            call.result = await self._invoke(*arguments)
        except Exception as error:
            call.error = error
            raise
        except trio.Cancelled:
            self.cancelled += 1
            call.cancelled = True
            raise
        else:
            return call.result  # type: ignore[no-any-return]
        finally:
            self.running -= 1
            call.ended = trio.current_time()
