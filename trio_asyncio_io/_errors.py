"""Errors: those that the operator itself raises, exceptions as users see them, and what one says about the service.

ElementTimeoutError (trio.TooSlowError)   an invocation exceeded its timeout
AttemptTimeoutError (trio.TooSlowError)   an attempt exceeded the retry strategy's attempt_timeout
NotAsyncError (TypeError)                 the function is not async, or an `await` is missing in it

An exception of user code comes out as itself: copied if several elements share it, and without a group around a single
one. `transient` decides whether a retry may avoid it, and `outcome_of` returns the outcome of its call, for gates.
"""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import Callable, Iterable, Iterator, Mapping
from inspect import CORO_CREATED, getcoroutinestate, isasyncgen
from types import CoroutineType
from typing import Any

import trio

from ._core.gate import Gate, Outcome, RefusedError, as_outcome
from ._core.retry import seconds_of
from ._values.describe import describe
from ._values.notes import attribute_of, chain_of, leaves_of, set_on, text_of

__all__ = [
    "AttemptTimeoutError",
    "ElementTimeoutError",
    "NotAsyncError",
    "Reading",
    "combine",
    "flatten",
    "is_cancelled",
    "is_caused_by",
    "may_help_to_split",
    "needs_asyncio",
    "outcome_for",
    "outcome_of",
    "reraise",
    "split",
    "transient",
]

# What asyncio, and Trio, say if an asyncio function runs on Trio
ON_TRIO = (
    "no running event loop",
    "There is no current event loop",
    "trio.run received unrecognized yield message",
    "'NoneType' object has no attribute 'create_future'",  # a lock, a semaphore, an event or a queue that has to wait
)

_ERROR_STATUSES = range(400, 600)
_TRANSIENT_STATUSES = frozenset({408, 429, *range(500, 600)})

_TOO_MANY_REQUESTS, _UNAVAILABLE = 429, 503

# Codes of AWS with which its services throttle and report passing failures, often with status 400. botocore's standard
# mode retries them
_AWS_THROTTLED = frozenset(
    {
        "BandwidthLimitExceeded",
        "EC2ThrottledException",
        "LimitExceededException",
        "PriorRequestNotComplete",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "SlowDown",
        "ThrottledException",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
        "TransactionInProgressException",
    }
)
_AWS_TRANSIENT = _AWS_THROTTLED | {"RequestTimeout", "RequestTimeoutException"}

_ERRNOS = frozenset(
    {
        errno.EADDRNOTAVAIL,  # no free local port
        errno.ECONNABORTED,
        errno.ECONNREFUSED,
        errno.ECONNRESET,
        errno.EHOSTDOWN,
        errno.EHOSTUNREACH,
        errno.ENETDOWN,
        errno.ENETRESET,
        errno.ENETUNREACH,
        errno.ENOBUFS,
        errno.EPIPE,
        errno.ESHUTDOWN,
        errno.ETIMEDOUT,
    }
)

# What OpenSSL reports, by version, if a server does not speak TLS
_NOT_TLS = frozenset({"RECORD_LAYER_FAILURE", "UNKNOWN_PROTOCOL", "WRONG_VERSION_NUMBER"})

# By name, because these packages need not be installed. The first class in the MRO that is listed decides.
_HTTPX = {"TimeoutException": True, "NetworkError": True, "RemoteProtocolError": True}
_OPENAI = {"APIConnectionError": True}
_CLASSES: Mapping[str, Mapping[str, bool]] = {
    "httpx": _HTTPX,
    "httpx2": _HTTPX,
    "httpcore": _HTTPX,
    "aiohttp": {"ServerDisconnectedError": True, "ClientPayloadError": True},
    "requests": {
        "ConnectionError": True,
        "Timeout": True,
        "ChunkedEncodingError": True,
        "ProxyError": False,
        "SSLError": False,
    },
    "botocore": {
        "ConnectionError": True,
        "ConnectionClosedError": True,
        "ReadTimeoutError": True,
        "ProxyConnectionError": False,
        "SSLError": False,
    },
    "openai": _OPENAI,
    "anthropic": _OPENAI,
    "redis": {"ConnectionError": True, "TimeoutError": True, "AuthenticationError": False, "AuthorizationError": False},
    "asyncpg": {"PostgresConnectionError": True},
}


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
        set_on(error, __context__=context)


def is_cancelled(error: BaseException) -> bool:
    """Whether this is Trio's cancellation."""
    return isinstance(error, trio.Cancelled)


def is_caused_by(failure: Exception | None) -> Callable[[BaseException], bool]:
    """Matches the exception that `put` raised because the operator had failed."""

    def matches(error: BaseException) -> bool:
        return failure is not None and isinstance(error, trio.BrokenResourceError) and error.__cause__ is failure

    return matches


def transient(error: BaseException) -> bool:
    """Whether a retry may avoid this error. Pass it as `retry_on`.

    These errors are transient:

    * timeouts: `TimeoutError`, `trio.TooSlowError` (so `AttemptTimeoutError`, too) and those of httpx;
    * connection errors: `ConnectionError`, `trio.BrokenResourceError`, `OSError`s for an unreachable network or host
      and for a temporary failure of name resolution, and those of httpx, aiohttp, requests, botocore, openai, redis and
      asyncpg;
    * HTTP statuses 408, 429 and 5xx, read from `error.response` (`status_code`, `status`, or botocore's dict) or from
      the `status_code`, `status` or `code` of the error itself;
    * AWS's codes for throttling and passing failures, such as `ThrottlingException`, in botocore's errors, whatever the
      status; they are those that botocore's standard mode retries;
    * errors with a `retry_after` attribute that is not None;
    * exception groups whose exceptions are all transient.

    All other errors are not: a `ValueError`, a status 401 or 404, your own exceptions. Any other status from 400 to 499
    is not transient even if the error is a `ConnectionError`. Neither is a connection error whose cause is an invalid
    certificate, an unknown host, or a server that does not speak TLS.

    Never raises, can be pickled, and imports none of these libraries.

    Args:
        error: The exception of an attempt.

    Returns:
        True if the error is transient.

    Example:
        >>> retry = FixedDelay(3, 0.5, retry_on=transient)
        >>> errors = (TimeoutError(), ConnectionResetError(), ValueError())
        >>> [retry.retries_exception(error) for error in errors]
        [True, True, False]
    """
    return Reading(error).is_transient


class Reading:
    """What an exception says about the service. Each part is read once, when it is first needed. Never raises.

    A worker reads the error of a call once, for its gates, its retries and the split of its group.

    Args:
        error: The exception.
    """

    __slots__ = ("_is_transient", "_leaves", "_outcome", "_seconds", "error")

    def __init__(self, error: BaseException) -> None:
        self.error = error
        is_group = issubclass(type(error), BaseExceptionGroup)
        self._leaves = [_Leaf(leaf) for leaf in leaves_of(error)] if is_group else [_Leaf(error)]
        self._is_transient: bool | None = None
        self._outcome: Outcome | None = None
        self._seconds: tuple[float | None] | None = None

    @property
    def is_transient(self) -> bool:
        """See `transient`."""
        if self._is_transient is None:
            try:
                self._is_transient = all(leaf.is_transient() for leaf in self._leaves)
            except Exception:  # noqa: BLE001 - an attribute that raises must not replace the error
                self._is_transient = False
        return self._is_transient

    @property
    def seconds(self) -> float | None:
        """See `retry_after`."""
        if self._seconds is None:
            waits = [leaf.seconds() for leaf in self._leaves]
            self._seconds = (
                waits[0] if len(waits) == 1 else max((each for each in waits if each is not None), default=None),
            )
        return self._seconds[0]

    @property
    def outcome(self) -> Outcome:
        """See `outcome_of`."""
        if self._outcome is None:
            kinds = {leaf.kind() for leaf in self._leaves if isinstance(leaf.error, Exception)}
            error = self.error if isinstance(self.error, Exception) else None
            if "throttled" in kinds:
                self._outcome = Outcome("throttled", self.seconds, error)
            else:
                self._outcome = Outcome("overload" if "overload" in kinds else "error", error=error)
        return self._outcome


class _Leaf:
    """One exception of a group, or the only one."""

    __slots__ = ("aws_code", "error", "requests", "status")

    def __init__(self, error: BaseException) -> None:
        self.error = error
        self.requests = attribute_of(error, "retry_after") is not None
        self.aws_code = _aws_code_of(error)
        self.status = status_of(error) if isinstance(error, Exception) else None

    def seconds(self) -> float | None:
        """See `retry_after`."""
        return seconds_of(self.error)

    def is_transient(self) -> bool:
        """See `transient`."""
        error = self.error
        if not isinstance(error, Exception):
            return False
        if self.requests or self.aws_code in _AWS_TRANSIENT:
            return True
        if self.status is not None:
            return self.status in _TRANSIENT_STATUSES
        return (_is_timeout_or_connection_error(error) or _is_listed(error)) and not _has_lasting_cause(error)

    def kind(self) -> str:
        """See `outcome_of`."""
        if self.requests or self.status == _TOO_MANY_REQUESTS or self.aws_code in _AWS_THROTTLED:
            return "throttled"
        if self.status == _UNAVAILABLE and self.seconds() is not None:
            return "throttled"
        try:
            return "overload" if self.is_transient() else "error"
        except Exception:  # noqa: BLE001 - an attribute that raises must not replace the error
            return "error"


def status_of(error: Exception) -> int | None:
    """The HTTP status of the error if it is from 400 to 599, else None. Never raises."""
    for status in _statuses_of(error):
        if isinstance(status, int) and status in _ERROR_STATUSES:
            return int(status)
    return None


def _statuses_of(error: Exception) -> Iterator[Any]:
    response = attribute_of(error, "response")
    if isinstance(response, dict):
        metadata = response.get("ResponseMetadata")
        yield metadata.get("HTTPStatusCode") if isinstance(metadata, dict) else None
    yield attribute_of(response, "status_code")
    yield attribute_of(response, "status")
    yield attribute_of(error, "status_code")
    yield attribute_of(error, "status")
    yield attribute_of(error, "code")


def _aws_code_of(error: BaseException) -> str | None:
    """The code in an error of botocore, as AWS's service has sent it."""
    response = attribute_of(error, "response")
    details = response.get("Error") if isinstance(response, dict) else None
    code = details.get("Code") if isinstance(details, dict) else None
    return code if isinstance(code, str) else None


def _is_timeout_or_connection_error(error: Exception) -> bool:
    if isinstance(error, TimeoutError | ConnectionError | trio.TooSlowError | trio.BrokenResourceError):
        return True
    if isinstance(error, ssl.SSLError):  # its errno comes from OpenSSL
        return isinstance(error, ssl.SSLEOFError)
    if isinstance(error, socket.gaierror):  # its errno comes from the resolver
        return error.errno == socket.EAI_AGAIN
    return isinstance(error, OSError) and (error.errno in _ERRNOS or _wraps_transient(error))


def _wraps_transient(error: OSError) -> bool:
    """Whether this `OSError` has no errno and reports another error, which is transient."""
    if error.errno is not None:
        return False
    reason = attribute_of(error, "reason")  # urllib.error.URLError
    if isinstance(reason, Exception):
        return transient(reason)
    if type(error) is OSError and error.__cause__ is not None:  # trio.open_tcp_stream
        return transient(error.__cause__)
    # asyncio's loop.create_connection, if it cannot connect to any of several addresses
    return type(error) is OSError and str(error).startswith("Multiple exceptions: [Errno ")


def _is_listed(error: Exception) -> bool:
    for kind in type(error).__mro__:
        names = _CLASSES.get(kind.__module__.partition(".")[0], {})
        if kind.__name__ in names:
            return names[kind.__name__]
    return False


def _has_lasting_cause(error: BaseException) -> bool:
    """Whether one of its causes is there at the next attempt, too."""
    return any(map(_is_lasting, [*chain_of(error), *_chain_in_arguments(error)]))


def _chain_in_arguments(error: BaseException) -> list[BaseException]:
    """The causes of the error of urllib3 that an error of requests has as its argument, and not as its cause."""
    reasons = (attribute_of(argument, "reason") for argument in error.args if isinstance(argument, Exception))
    return next((chain_of(reason) for reason in reasons if isinstance(reason, Exception)), [])


def _is_lasting(cause: BaseException) -> bool:
    if isinstance(cause, socket.gaierror):
        return cause.errno != socket.EAI_AGAIN
    if isinstance(cause, ssl.SSLCertVerificationError):
        return True
    return isinstance(cause, ssl.SSLError) and attribute_of(cause, "reason") in _NOT_TLS


def outcome_of(error: Exception) -> Outcome:
    """The outcome of a call that raised this exception, for gates.

    * "throttled": an exception with a `retry_after` attribute that is not None, a status 429, a status 503 with a
      `Retry-After` header, or one of AWS's codes for throttling. Its `retry_after` is what the function `retry_after`
      reads.
    * "overload": a status 408 or 5xx, a timeout, a connection error; see `transient`.
    * "error": everything else.

    The status is read from `error.response` or from the error itself. In a group, the worst exception counts, in this
    order. Never raises.
    """
    return Reading(error).outcome


def outcome_for(reading: Reading, gate: Gate) -> Outcome:
    """The outcome of a call that raised this exception, for one gate.

    Raises:
        Exception: The `classify` of the gate raised, or returned something other than an outcome.
    """
    if gate.classify is None:
        return reading.outcome
    assert isinstance(reading.error, Exception)
    return as_outcome(gate.classify(reading.error), reading.error)


def may_help_to_split(reading: Reading) -> bool:
    """Whether the records of a call may be the cause of its error, so that a call for fewer of them may succeed.

    Not if the service fails or refuses calls, or if the function cannot be called at all.
    """
    error = reading.error
    assert isinstance(error, Exception)
    if reading.is_transient or needs_asyncio(error):
        return False
    return not any(isinstance(leaf, RefusedError | NotAsyncError) for leaf in leaves_of(error))
