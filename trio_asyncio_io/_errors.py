"""The errors that the operator raises of its own accord; what others raise comes out as itself.

    ElementTimeoutError (trio.TooSlowError)   an invocation did not end within its timeout
    AttemptTimeoutError (trio.TooSlowError)   one attempt of it did not end within the retry strategy's
    NotAsyncError (TypeError)                 the function is not async; says how to adapt it

`parted` and `raise_as_it_is` see to the second half of that.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import isasyncgen

import trio

from ._core.describe import describe

__all__ = [
    "AttemptTimeoutError",
    "ElementTimeoutError",
    "NotAsyncError",
    "is_cancelled",
    "is_echo_of",
    "members_of",
    "parted",
    "raise_as_it_is",
]


class _TimeoutError(trio.TooSlowError):
    """What the two have in common: the seconds."""

    def __init__(self, message: str, timeout: float = float("nan")) -> None:
        super().__init__(message, timeout)
        self.timeout = timeout

    def __str__(self) -> str:
        return str(self.args[0])


class ElementTimeoutError(_TimeoutError):
    """An invocation, all its attempts and backoffs included, did not end within its timeout.

    It is raised only after the running attempt has been cancelled and has unwound. It is never retried.

    Attributes:
        timeout: The timeout that was missed, in seconds.
    """


class AttemptTimeoutError(_TimeoutError):
    """One attempt did not end within the retry strategy's `attempt_timeout`, and has unwound.

    The operator that raised it always retries it; if there is no attempt left, it is the element's failure. To an
    operator around that one it is an exception of the function, and `retry_on` decides.

    Attributes:
        timeout: The timeout that was missed, in seconds.
    """


class NotAsyncError(TypeError):
    """The function's call gave something that cannot be awaited."""

    @classmethod
    def for_result(cls, function: object, result: object) -> NotAsyncError:
        """The error for a function whose call returned `result` instead of an awaitable."""
        if isasyncgen(result):
            return cls(
                f"the function must return its result, but {describe(function)} is an async generator, because it "
                "contains `yield`. Return a list instead; with flatten=True its items come out one by one"
            )
        return cls(
            f"the function must be async, but {describe(function)} returned {describe(result)}, which cannot be "
            "awaited. Declare it with `async def`; a blocking function can be run in threads with "
            "`trio_asyncio_io.adapters.in_thread(function)`"
        )


def parted(
    error: BaseException | None, condition: Callable[[BaseException], bool]
) -> tuple[BaseException | None, BaseException | None]:
    """What of the exception meets the condition, and the rest; what is whole stays itself."""
    if not isinstance(error, BaseExceptionGroup):
        return (error, None) if error is not None and condition(error) else (None, error)
    matched, rest = error.split(condition)
    if matched is None:
        return None, error
    return (error, None) if rest is None else (matched, rest)


def raise_as_it_is(error: BaseException) -> None:
    """Raise the exception with the context that it had."""
    context = error.__context__
    try:
        raise error
    finally:
        BaseException.__setattr__(error, "__context__", context)  # it may be a frozen dataclass


def is_cancelled(error: BaseException) -> bool:
    """Whether Trio cancelled something."""
    return isinstance(error, trio.Cancelled)


def is_echo_of(failure: Exception | None) -> Callable[[BaseException], bool]:
    """Whether an exception only told the body, which was putting, that the operator had failed."""
    return lambda error: isinstance(error, trio.BrokenResourceError) and error.__cause__ is failure is not None


def members_of(error: BaseException | None) -> tuple[BaseException | None, ...]:
    """The exceptions of a group; of anything else, itself."""
    return error.exceptions if isinstance(error, BaseExceptionGroup) else (error,)
