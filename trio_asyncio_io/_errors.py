"""The errors that the operator itself raises, and exceptions as users see them.

ElementTimeoutError (trio.TooSlowError)   an invocation exceeded its timeout
AttemptTimeoutError (trio.TooSlowError)   an attempt exceeded the retry strategy's attempt_timeout
NotAsyncError (TypeError)                 the function is not async; the message explains how to adapt it

An exception of user code comes out as itself: copied if several elements share it, and without a group around a single
one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from inspect import isasyncgen
from typing import Any, TypeVar

import trio

from ._core.describe import describe

__all__ = [
    "AttemptTimeoutError",
    "ElementTimeoutError",
    "NotAsyncError",
    "combine",
    "copied",
    "flatten",
    "is_cancelled",
    "is_caused_by",
    "reraise",
    "split",
]


class _TimeoutError(trio.TooSlowError):
    """A timeout with its seconds."""

    def __init__(self, message: str, timeout: float = float("nan")) -> None:
        super().__init__(message, timeout)
        self.timeout = timeout

    def __str__(self) -> str:
        return str(self.args[0])


class ElementTimeoutError(_TimeoutError):
    """An invocation, with all its attempts and backoffs, exceeded its timeout.

    It is raised once the running attempt has been cancelled and has unwound. It is never retried.

    Attributes:
        timeout: The timeout, in seconds.
    """


class AttemptTimeoutError(_TimeoutError):
    """An attempt exceeded the retry strategy's `attempt_timeout`. It has been cancelled and has unwound.

    The operator that raised it always retries it. After the last attempt, it is the element's failure. An operator
    around that one treats it as an exception of its function: `retry_on` decides.

    Attributes:
        timeout: The timeout, in seconds.
    """


class NotAsyncError(TypeError):
    """A call of the function returned something that cannot be awaited."""

    @classmethod
    def for_result(cls, function: object, result: object) -> NotAsyncError:
        """The error for a function whose call returned `result` instead of an awaitable."""
        if isasyncgen(result):
            return cls(
                f"the function must return its result, but {describe(function)} is an async generator, because it "
                "contains `yield`. Return a list instead; with flatten=True each item becomes an output"
            )
        return cls(
            f"the function must be async, but {describe(function)} returned {describe(result)}, which cannot be "
            "awaited. Declare it with `async def`, or run a blocking function in threads with "
            "`trio_asyncio_io.adapters.in_thread(function)`"
        )


E = TypeVar("E", bound=BaseException)


def copied(error: E) -> E:
    """A copy of the exception: type, arguments, attributes, cause, context, notes and traceback.

    If no faithful copy can be made, returns the exception itself.
    """
    twin = _copy(error) or _copy_without_init(error)
    if twin is None:
        return error
    if hasattr(twin, "__notes__"):
        twin.__notes__ = list(twin.__notes__)
    twin.__cause__, twin.__context__ = error.__cause__, error.__context__
    twin.__suppress_context__ = error.__suppress_context__
    return twin.with_traceback(error.__traceback__)


def _copy(error: E) -> E | None:
    try:
        twin = copy(error)
    except Exception:  # noqa: BLE001 - an `__init__` that takes other arguments than `args`
        return None
    return twin if _is_faithful(error, twin) else None


def _copy_without_init(error: E) -> E | None:
    """A copy of an exception whose `__init__` takes other arguments than `args`, as in many libraries."""
    try:
        twin = type(error).__new__(type(error), *error.args)
        twin.__dict__.update(error.__dict__)
    except Exception:  # noqa: BLE001 - a `__new__` of its own, which may raise anything
        return None
    return twin if _is_faithful(error, twin) else None


def _is_faithful(error: BaseException, twin: BaseException) -> bool:
    if twin is error or type(twin) is not type(error) or _has_slots(type(error)):
        return False
    if len(twin.args) != len(error.args) or any(a is not b for a, b in zip(twin.args, error.args, strict=True)):
        return False
    try:
        return twin.__dict__.keys() == error.__dict__.keys() and str(twin) == str(error)
    except Exception:  # noqa: BLE001 - a `__str__` that raises
        return False


def _has_slots(kind: type) -> bool:
    """Whether instances have attributes outside of their `__dict__`, which neither way of copying copies."""
    return any(base.__dict__.get("__slots__") for base in kind.__mro__)


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


def combine(errors: Iterable[BaseException | None]) -> BaseException | None:
    """The exception, or a group of them if they are several. An exit that several tasks raised counts once."""
    different: dict[Any, BaseException] = {}
    for error in errors:
        if error is not None:
            is_exit = isinstance(error, SystemExit | KeyboardInterrupt)
            different.setdefault((type(error), repr(error.args)) if is_exit else id(error), error)
    if len(different) > 1:
        return BaseExceptionGroup("the operator and its block both failed", list(different.values()))
    return next(iter(different.values()), None)


def reraise(error: BaseException) -> None:
    """Raise an exception without changing its context."""
    context = error.__context__
    try:
        raise error
    finally:
        BaseException.__setattr__(error, "__context__", context)  # it may be a frozen dataclass


def is_cancelled(error: BaseException) -> bool:
    """Whether this is Trio's cancellation."""
    return isinstance(error, trio.Cancelled)


def is_caused_by(failure: Exception | None) -> Callable[[BaseException], bool]:
    """Matches the exception that `put` raised because the operator had failed."""

    def matches(error: BaseException) -> bool:
        return failure is not None and isinstance(error, trio.BrokenResourceError) and error.__cause__ is failure

    return matches
