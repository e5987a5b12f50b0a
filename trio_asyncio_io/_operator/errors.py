"""Errors: those that the operator itself raises, and exceptions as users see them.

ElementTimeoutError (trio.TooSlowError)   an invocation exceeded its timeout
AttemptTimeoutError (trio.TooSlowError)   an attempt exceeded the retry strategy's attempt_timeout
NotAsyncError (TypeError)                 the function is not async, or an `await` is missing in it

An exception of user code comes out as itself: copied if several elements share it, and without a group around a single
one. `_core.reading` has what an exception says about the service.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from inspect import CORO_CREATED, getcoroutinestate, isasyncgen
from types import CoroutineType
from typing import Any, NoReturn

import trio

from .._core.gate import RefusedError
from .._core.reading import Reading
from .._values.describe import describe
from .._values.exceptions import leaves_of, set_on, text_of

# What asyncio, and Trio, say if an asyncio function runs on Trio
ON_TRIO = (
    "no running event loop",
    "There is no current event loop",
    "trio.run received unrecognized yield message",
    "'NoneType' object has no attribute 'create_future'",  # a lock, a semaphore, an event or a queue that has to wait
)


class _TimeoutError(trio.TooSlowError):
    """A timeout with its seconds."""

    def __init__(self, message: str, timeout: float = float("nan")) -> None:
        super().__init__(message, timeout)
        self.timeout = timeout

    def __str__(self) -> str:
        return str(self.args[0])


class ElementTimeoutError(_TimeoutError):
    """An invocation, with all its attempts and backoffs, exceeded its timeout.

    It is raised once the running attempt has been cancelled and has unwound. If a backoff or a `Retry-After` is so long
    that the next attempt could not begin before the deadline, it is raised immediately. It is never retried.

    Attributes:
        timeout: The timeout, in seconds.
    """


class AttemptTimeoutError(_TimeoutError):
    """An attempt exceeded the retry strategy's `attempt_timeout`. It has been cancelled and has unwound.

    With `group=`, it also ends the attempt of a record that has time left, if another record of its call has none.

    The operator that raised it always retries it. After the last attempt, it is the element's failure. An operator
    around that one treats it as an exception of its function: `retry_on` decides.

    Attributes:
        timeout: The timeout, in seconds.
    """


class NotAsyncError(TypeError):
    """A call of the function returned something that cannot be awaited, or its result is a coroutine.

    It ends the run whatever `on_error` is, and is never retried: the mistake is in the code.
    """

    @classmethod
    def for_coroutine(
        cls, name: str, result: CoroutineType[Any, Any, Any], *, verb: str = "returned", remedy: str = "return await"
    ) -> NotAsyncError:
        """The error for a function of this name whose result is a coroutine. The coroutine is closed."""
        if getcoroutinestate(result) == CORO_CREATED:
            result.close()  # Python would warn that it was never awaited
        return cls(f"{name} {verb} a coroutine: write `{remedy} {result.__name__}(...)`")

    @classmethod
    def for_result(cls, name: str, result: object, *, shows_value: bool = True) -> NotAsyncError:
        """The error for a function of this name whose call returned `result` instead of an awaitable.

        Args:
            shows_value: False leaves the result out of the message, which has its type only.
        """
        if isasyncgen(result):
            return cls(
                f"the function must return its result, but {name} is an async generator, because it "
                "contains `yield`. Return a list instead; with flatten=True each item becomes an output"
            )
        returned = describe(result) if shows_value else f"a result of the type {type(result).__name__}"
        return cls(
            f"the function must be async, but {name} returned {returned}, which cannot be "
            "awaited. Declare it with `async def`, or run a blocking function in threads with "
            "`trio_asyncio_io.adapters.in_thread(function)`"
        )


def needs_asyncio(error: Exception) -> bool:
    """Whether a function failed because it uses asyncio, whose loop does not run."""
    return isinstance(error, RuntimeError | TypeError | AttributeError) and text_of(error).startswith(ON_TRIO)


def split(
    error: BaseException | None, condition: Callable[[BaseException], bool]
) -> tuple[BaseException | None, BaseException | None]:
    """The part of an exception that meets the condition, and the rest. An exception that is not split stays itself."""
    if not isinstance(error, BaseExceptionGroup):
        return (error, None) if error is not None and condition(error) else (None, error)
    matched, rest = error.split(condition)
    if matched is None:
        return None, error
    return (error, None) if rest is None else (matched, rest)


def flatten(error: BaseException | None) -> tuple[BaseException | None, ...]:
    """The exceptions of a group, or the exception itself."""
    return error.exceptions if isinstance(error, BaseExceptionGroup) else (error,)


def combine(message: str, errors: Iterable[BaseException | None]) -> BaseException | None:
    """The exception, or a group of them with this message. An exit that several tasks raised counts once."""
    different: dict[Any, BaseException] = {}
    for error in errors:
        if error is not None:
            is_exit = isinstance(error, SystemExit | KeyboardInterrupt)
            different.setdefault((type(error), repr(error.args)) if is_exit else id(error), error)
    if len(different) > 1:
        return BaseExceptionGroup(message, list(different.values()))
    return next(iter(different.values()), None)


def reraise(error: BaseException) -> NoReturn:
    """Raise an exception without changing its context."""
    context = error.__context__
    try:
        raise error
    finally:
        set_on(error, __context__=context)
        del error, context  # no cycle of the exception and this frame


def is_cancelled(error: BaseException) -> bool:
    """Whether this is Trio's cancellation."""
    return isinstance(error, trio.Cancelled)


def is_caused_by(failure: Exception | None) -> Callable[[BaseException], bool]:
    """Matches the exception that `put` raised because the operator had failed."""

    def matches(error: BaseException) -> bool:
        return failure is not None and isinstance(error, trio.BrokenResourceError) and error.__cause__ is failure

    return matches


def may_help_to_split(reading: Reading) -> bool:
    """Whether the records of a call may be the cause of its error, so that a call for fewer of them may succeed.

    Not if the service fails or refuses calls, or if the function cannot be called at all.
    """
    error = reading.error
    assert isinstance(error, Exception)
    if reading.is_transient or needs_asyncio(error):
        return False
    return not any(isinstance(leaf, RefusedError | NotAsyncError) for leaf in leaves_of(error))
