"""Classifies the exception of a call: whether a retry may avoid it, and what it says about the service."""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import Iterator, Mapping
from typing import Any

import trio

from ._core.gate import Gate, Outcome, as_outcome
from ._core.probe import attribute_of, leaves_of
from ._core.retry_after import retry_after

__all__ = ["outcome_for", "outcome_of", "status_of", "transient"]

_ERROR_STATUSES = range(400, 600)
_TRANSIENT_STATUSES = frozenset({408, 429, *range(500, 600)})

_TOO_MANY_REQUESTS, _UNAVAILABLE = 429, 503

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


def transient(error: BaseException) -> bool:
    """Whether a retry may avoid this error. Pass it as `retry_on`.

    These errors are transient:

    * timeouts: `TimeoutError`, `trio.TooSlowError` (so `AttemptTimeoutError`, too) and those of httpx;
    * connection errors: `ConnectionError`, `trio.BrokenResourceError`, `OSError`s for an unreachable network or host
      and for a temporary failure of name resolution, and those of httpx, aiohttp, requests, botocore, openai, redis and
      asyncpg;
    * HTTP statuses 408, 429 and 5xx, read from `error.response` (`status_code`, `status`, or botocore's dict) or from
      the `status_code`, `status` or `code` of the error itself;
    * errors with a `retry_after` attribute that is not None;
    * exception groups whose exceptions are all transient.

    All other errors are not: a `ValueError`, a status 401 or 404, an invalid certificate, your own exceptions. Any
    other status from 400 to 499 is not transient even if the error is a `ConnectionError`.

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
    try:
        return all(_is_transient(leaf) for leaf in leaves_of(error))
    except Exception:  # noqa: BLE001 - an attribute that raises must not replace the error
        return False


def _is_transient(error: BaseException) -> bool:
    if not isinstance(error, Exception):
        return False
    if attribute_of(error, "retry_after") is not None:
        return True
    status = status_of(error)
    if status is not None:
        return status in _TRANSIENT_STATUSES
    return (_is_timeout_or_connection_error(error) or _is_listed(error)) and not _is_bad_certificate(error)


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


def _is_bad_certificate(error: BaseException) -> bool:
    """Whether an invalid certificate is the error or one of its causes."""
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return True
        seen.add(id(cause))
        cause = cause.__cause__
    return False


def outcome_of(error: Exception) -> Outcome:
    """The outcome of a call that raised this exception, for gates.

    * "throttled": an exception with a `retry_after` attribute that is not None, a status 429, or a status 503 with a
      `Retry-After` header. Its `retry_after` is what the function `retry_after` reads.
    * "overload": a status 408 or 5xx, a timeout, a connection error; see `transient`.
    * "error": everything else.

    The status is that of `error.response` or of the error itself. Of a group, the worst exception counts, in this
    order. Never raises.
    """
    kinds = {_kind_of(leaf) for leaf in leaves_of(error) if isinstance(leaf, Exception)}
    if "throttled" in kinds:
        return Outcome("throttled", retry_after(error), error)
    return Outcome("overload" if "overload" in kinds else "error", error=error)


def outcome_for(error: Exception, gate: Gate) -> Outcome:
    """The outcome of a call that raised this exception, for one gate.

    Raises:
        Exception: The `classify` of the gate raised, or returned something other than an outcome.
    """
    return outcome_of(error) if gate.classify is None else as_outcome(gate.classify(error), error)


def _kind_of(error: Exception) -> str:
    status = status_of(error)
    if status == _TOO_MANY_REQUESTS or attribute_of(error, "retry_after") is not None:
        return "throttled"
    if status == _UNAVAILABLE and retry_after(error) is not None:
        return "throttled"
    return "overload" if transient(error) else "error"
