"""Helpers for tests of your own functions: a scripted function, and a recorder around any function.

Both use Trio's clock. Under `trio.testing.MockClock` (pytest-trio's fixture `autojump_clock`), tests run in virtual
time, and instants are exact: compare them with `==`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

import trio

from ._operator.errors import is_cancelled, split
from ._operator.function import Function, Wrapper, as_function, awaitable_from
from ._values.checks import check_int, check_seconds
from ._values.describe import describe

__all__ = ["Call", "Recorder", "Scripted", "Step", "fails_first"]

T = TypeVar("T")
R = TypeVar("R")

_SAME_VALUE: Any = object()


@dataclass(frozen=True, slots=True)
class Step:
    """The behaviour of one call: wait, then return or raise.

    Args:
        latency: Seconds until the call ends, not negative. 0.0: after one checkpoint. `math.inf`: only when it is
            cancelled.
        result: The call's result. By default, its argument.
        error: Raise this instead of returning: an exception, or a type, so that each call raises a new instance.

    Raises:
        TypeError, ValueError: `latency` is not a number, or it is negative or NaN; or `error` cannot be raised.
    """

    latency: float = 0.0
    result: Any = _SAME_VALUE
    error: BaseException | type[BaseException] | None = None

    def __post_init__(self) -> None:
        check_seconds("latency", self.latency)
        if self.error is not None:
            _check_error(self.error)


Steps: TypeAlias = Step | Sequence[Step]


def fails_first(attempts: int, error: BaseException | type[BaseException], then: Step | None = None) -> list[Step]:
    """Steps for `Scripted`: raise `error` in the first `attempts` calls, then do `then`.

    Args:
        attempts: The number of calls that raise, at least 0. Each one raises after one checkpoint.
        error: The exception, or a type, so that each call raises a new instance.
        then: The step of all later calls. None: they return their argument.

    Returns:
        A list of steps.

    Raises:
        TypeError, ValueError: `attempts` is not such a number, `error` cannot be raised, or `then` is no step.
    """
    check_int("attempts", attempts, at_least=0)
    _check_error(error)
    if not isinstance(then, Step | None):
        raise TypeError(f"then must be a Step such as Step(0.1, result=3), got {describe(then)}")
    return [Step(error=error)] * attempts + [then or Step()]


class Scripted(Generic[T]):
    """An async function whose calls follow a script.

    A call takes its step from `calls` while there are any left, then from `values`, then from `default`. A call with
    several arguments, such as the columns of a UDF, has their tuple as its value.

    Args:
        values: Value -> a step, or a sequence of steps, not empty. The n-th call with this value takes the n-th step;
            later calls take the last one.
        calls: The steps of the first calls, whatever their values.
        default: The same for any other value. None (the default): a call returns its argument after one checkpoint.

    Raises:
        TypeError: Something is not a step.
        ValueError: A sequence of steps is empty.

    Cancellation: a waiting call ends immediately. Its step is used up.

    Example:
        >>> steps = {"slow": Step(30.0), "flaky": fails_first(2, OSError("busy"))}
        >>> lookup = Scripted(steps, default=Step(0.01))
        >>> trio.run(lookup, "quick")
        'quick'
    """

    def __init__(
        self, values: Mapping[T, Steps] | None = None, *, calls: Sequence[Step] = (), default: Steps | None = None
    ) -> None:
        self._values = dict(values or {})
        self._calls = list(calls)
        self._default = Step() if default is None else default
        for value, steps in self._values.items():
            _check_steps(f"values[{describe(value)}]", steps)
        _check_steps("default", self._default)
        if self._calls:
            _check_steps("calls", self._calls)
        self._called = 0
        self._called_with: dict[T, int] = {}

    async def __call__(self, *arguments: T) -> Any:
        """Do the next step for this value."""
        value: Any = arguments[0] if len(arguments) == 1 else arguments
        step = self._next_step(value)
        await trio.sleep(step.latency)
        if step.error is not None:
            raise step.error
        return value if step.result is _SAME_VALUE else step.result

    def _next_step(self, value: T) -> Step:
        self._called += 1
        if self._called <= len(self._calls):
            return self._calls[self._called - 1]
        try:
            steps = self._values.get(value, self._default)
        except TypeError:  # not hashable
            steps = self._default
        if isinstance(steps, Step):
            return steps
        position = self._called_with.get(value, 0)
        self._called_with[value] = position + 1
        return steps[min(position, len(steps) - 1)]


def _check_error(error: object) -> None:
    if not issubclass(error if isinstance(error, type) else type(error), BaseException):
        raise TypeError(f"error must be an exception, or a type of exceptions, got {describe(error)}")


def _check_steps(name: str, steps: object) -> None:
    if isinstance(steps, Step):
        return
    if not isinstance(steps, Sequence) or not all(isinstance(each, Step) for each in steps):
        raise TypeError(f"{name} must have steps such as Step(0.1, result=3), got {describe(steps)}")
    if not steps:
        raise ValueError(f"{name} must have at least one step, got {describe(steps)}")


@dataclass(slots=True)
class Call(Generic[T]):
    """One call that a `Recorder` recorded.

    Attributes:
        value: The argument; a tuple if there were several.
        started: The start, in seconds on Trio's clock.
        ended: The end, after the call has unwound; None while it runs.
        cancelled: Whether cancellation ended it.
        result: The result; None if it has not returned.
        error: The exception; None if it has not raised.
    """

    value: T
    started: float
    ended: float | None = None
    cancelled: bool = False
    result: Any = None
    error: Exception | None = None


class Recorder(Wrapper, Generic[T, R]):
    """Records the calls of an async function.

    Pass it to an operator in place of the function. Results and exceptions are unchanged.

    Args:
        function: An async callable, or an `AsyncFunction`; its `open`, `close` and `timeout` are called, too.

    Attributes:
        calls: All calls so far, in the order in which they started.
        running: The number of calls that run now. 0 after an operator's block, however it ended.
        peak_running: The highest `running` so far.
        cancelled: The number of calls that cancellation ended.

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
        for name in ("open", "close", "timeout"):  # the operator checks which of these exist
            if callable(method := getattr(inner, name, None)):
                setattr(self, name, method)
        self.calls: list[Call[T]] = []
        self.running = 0
        self.peak_running = 0
        self.cancelled = 0

    @property
    def values(self) -> list[T]:
        """The values of all calls, in the order in which they started."""
        return [call.value for call in self.calls]

    async def __call__(self, *arguments: T) -> R:
        """Call the function."""
        return await self.invoke(*arguments)

    async def invoke(self, *arguments: Any) -> R:
        """Call the function. The operator calls this method."""
        call: Call[Any] = Call(arguments[0] if len(arguments) == 1 else arguments, trio.current_time())
        self.calls.append(call)
        self.running += 1
        self.peak_running = max(self.peak_running, self.running)
        try:
            call.result = await awaitable_from(self._invoke, *arguments)
        except Exception as error:
            call.error = error
            raise
        except BaseException as error:
            if split(error, is_cancelled)[0] is not None:  # a nursery raises a group of cancellations
                self.cancelled += 1
                call.cancelled = True
            raise
        else:
            return call.result  # type: ignore[no-any-return]
        finally:
            self.running -= 1
            call.ended = trio.current_time()
