"""The errors that the operator itself raises. An exception of user code comes out as itself.

ElementTimeoutError (trio.TooSlowError)   an invocation exceeded its timeout
AttemptTimeoutError (trio.TooSlowError)   an attempt exceeded the retry strategy's attempt_timeout
NotAsyncError (TypeError)                 the function is not async; the message explains how to adapt it
"""

from __future__ import annotations

from inspect import isasyncgen

import trio

from ._core.describe import describe

__all__ = ["AttemptTimeoutError", "ElementTimeoutError", "NotAsyncError", "needs_asyncio"]

# What asyncio, and Trio, say if an asyncio function runs on Trio
ON_TRIO = ("no running event loop", "There is no current event loop", "trio.run received unrecognized yield message")


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


def needs_asyncio(error: Exception) -> bool:
    """Whether a function failed because it uses asyncio, whose loop does not run."""
    return isinstance(error, RuntimeError | TypeError) and str(error).startswith(ON_TRIO)
