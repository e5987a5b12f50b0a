"""What an exception says about the service: whether a retry may help, how long to wait, and the outcome for gates.

    transient      whether a retry may avoid the error
    retry_after    the seconds that the service requests to wait
    outcome_of     the outcome of its call, for gates
    Reading        all of them, each read once

Exceptions of other packages are recognised by name, because these packages need not be installed.
"""

from __future__ import annotations

import errno
import math
import re
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from email.utils import parsedate_to_datetime
from functools import cached_property
from numbers import Real
from typing import Any, TypeVar

from .._values.exceptions import attribute_of, chain_of, leaves_of
from .gate import Gate, Outcome, as_outcome

T = TypeVar("T")

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

# The first class in the MRO that is listed decides
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
    "trio": {"TooSlowError": True, "BrokenResourceError": True},
}

_DELAY = re.compile(r"[0-9]+(\.[0-9]+)?")


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


def retry_after(exception: BaseException) -> float | None:
    """The seconds that a service requests to wait before the next call; None if the exception has no such request.

    Sources, in this order:

    1. an attribute `retry_after` of the exception, in seconds;
    2. the header `retry-after-ms`, in milliseconds (OpenAI, Azure);
    3. the header `Retry-After` (RFC 9110, section 10.2.3).

    The headers are read from the exception's `response` (httpx, requests, botocore), or from the exception itself
    (aiohttp, urllib). `Retry-After` contains whole seconds or a date in one of HTTP's three formats. A fraction of a
    second, which some services send against the RFC, is read as well. The delay until a date is relative to the `Date`
    of the same response, so the two clocks may differ; a date in the past gives 0. A group gives the longest delay of
    its exceptions. The delays have no upper limit: the element's deadline limits them.

    Never raises. A value that cannot be parsed is ignored, and the next source counts.

    Returns:
        Finite seconds, not negative, or None.

    Example:
        >>> class Busy(Exception):
        ...     retry_after = 2.5
        >>> retry_after(Busy()), retry_after(ValueError("busy"))
        (2.5, None)
    """
    return Reading(exception).seconds


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


class Reading:
    """What an exception says about the service. Each part is read once, when it is first needed. Never raises.

    A worker reads the error of a call once, for its gates, its retries and the split of its group.

    Args:
        error: The exception.
    """

    def __init__(self, error: BaseException) -> None:
        self.error = error
        self._leaves = [_Leaf(leaf) for leaf in leaves_of(error)]

    @cached_property
    def is_transient(self) -> bool:
        """See `transient`."""
        return all(leaf.is_transient for leaf in self._leaves)

    @cached_property
    def seconds(self) -> float | None:
        """See `retry_after`."""
        return max((leaf.seconds for leaf in self._leaves if leaf.seconds is not None), default=None)

    @cached_property
    def outcome(self) -> Outcome:
        """See `outcome_of`."""
        kinds = {leaf.kind for leaf in self._leaves if isinstance(leaf.error, Exception)}
        error = self.error if isinstance(self.error, Exception) else None
        if "throttled" in kinds:
            return Outcome("throttled", self.seconds, error)
        return Outcome("overload" if "overload" in kinds else "error", error=error)

    def outcome_for(self, gate: Gate) -> Outcome:
        """The outcome of a call that raised this exception, for one gate.

        Raises:
            Exception: The `classify` of the gate raised, or returned something other than an outcome.
        """
        if gate.classify is None:
            return self.outcome
        assert isinstance(self.error, Exception)
        return as_outcome(gate.classify(self.error), self.error)


class _Leaf:
    """One exception of a group, or the only one."""

    def __init__(self, error: BaseException) -> None:
        self.error = error
        self._requested = attribute_of(error, "retry_after")
        self._response = attribute_of(error, "response")
        self._aws_code = _aws_code_of(self._response)
        self._status = _status_of(error, self._response) if isinstance(error, Exception) else None

    @cached_property
    def seconds(self) -> float | None:
        found = _checked(_of_attribute, self._requested)
        if found is None and (headers := _checked(_headers_of, self.error, self._response)):
            waits = (_checked(read, headers) for read in (_of_milliseconds, _of_retry_after))
            found = next((seconds for seconds in waits if seconds is not None), None)
        return found

    @cached_property
    def is_transient(self) -> bool:
        error = self.error
        if not isinstance(error, Exception):
            return False
        if self._requested is not None or self._aws_code in _AWS_TRANSIENT:
            return True
        if self._status is not None:
            return self._status in _TRANSIENT_STATUSES
        try:
            return (_is_timeout_or_connection_error(error) or _is_listed(error)) and not _has_lasting_cause(error)
        except Exception:  # noqa: BLE001 - an attribute that raises must not replace the error
            return False

    @property
    def kind(self) -> str:
        is_throttled = self._requested is not None or self._aws_code in _AWS_THROTTLED
        if is_throttled or self._status == _TOO_MANY_REQUESTS:
            return "throttled"
        if self._status == _UNAVAILABLE and self.seconds is not None:
            return "throttled"
        return "overload" if self.is_transient else "error"


def _status_of(error: Exception, response: Any) -> int | None:
    """The HTTP status of the error if it is from 400 to 599, else None. Never raises."""
    for status in _statuses_of(error, response):
        if isinstance(status, int) and status in _ERROR_STATUSES:
            return int(status)
    return None


def _statuses_of(error: Exception, response: Any) -> Iterator[Any]:
    if isinstance(response, dict):
        metadata = response.get("ResponseMetadata")
        yield metadata.get("HTTPStatusCode") if isinstance(metadata, dict) else None
    yield attribute_of(response, "status_code")
    yield attribute_of(response, "status")
    yield attribute_of(error, "status_code")
    yield attribute_of(error, "status")
    yield attribute_of(error, "code")


def _aws_code_of(response: Any) -> str | None:
    """The code in the response of an error of botocore, as AWS's service has sent it."""
    details = response.get("Error") if isinstance(response, dict) else None
    code = details.get("Code") if isinstance(details, dict) else None
    return code if isinstance(code, str) else None


def _is_timeout_or_connection_error(error: Exception) -> bool:
    if isinstance(error, TimeoutError | ConnectionError):
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


def _checked(read: Callable[..., T | None], *sources: Any) -> T | None:
    """What is read from there. None: nothing, or no such seconds."""
    try:
        found = read(*sources)
    except Exception:  # noqa: BLE001 - a bad value must not hide the service's own error
        return None
    return None if isinstance(found, float) and not 0 <= found < math.inf else found


def _of_attribute(value: Any) -> float | None:
    is_number = isinstance(value, Real | Decimal) and not isinstance(value, bool)
    return float(value) if is_number or (isinstance(value, str) and _is_plain(value)) else None


def _of_milliseconds(headers: Mapping[str, str]) -> float | None:
    value = headers.get("retry-after-ms", "")
    return float(value) / 1000 if _DELAY.fullmatch(value) else None


def _of_retry_after(headers: Mapping[str, str]) -> float | None:
    value = headers.get("retry-after", "")
    if not value:
        return None
    if _DELAY.fullmatch(value):
        return float(value)
    since = _date_of(headers["date"]) if "date" in headers else datetime.now(UTC)
    return max(0.0, (_date_of(value) - since).total_seconds())


def _headers_of(exception: BaseException, response: Any) -> dict[str, str]:
    """The headers of its response and its own, by their names in lower case."""
    found = [attribute_of(exception, "headers"), attribute_of(response, "headers")]
    if isinstance(response, dict):  # botocore
        found.append(attribute_of(response.get("ResponseMetadata"), "get")("HTTPHeaders"))
    mappings = [headers for headers in found if callable(attribute_of(headers, "items"))]
    return {str(name).lower(): str(value).strip() for headers in mappings for name, value in headers.items()}


def _date_of(text: str) -> datetime:
    """Parse a date in one of HTTP's formats: RFC 5322, RFC 850 with its two-digit year, or asctime, which has no zone.

    Raises:
        TypeError, ValueError, OverflowError: The text is not a date.
    """
    date = parsedate_to_datetime(text if _is_plain(text) else "")
    return date if date.tzinfo else date.replace(tzinfo=UTC)


def _is_plain(text: str) -> bool:
    # `int` and `float` accept digits of all scripts, and underscores between them
    return text.isascii() and "_" not in text
