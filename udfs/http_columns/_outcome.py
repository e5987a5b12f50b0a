"""Outcomes of requests: the response, the errors that retries and gates must see, and the gate that judges them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple

from trio_asyncio_io.gates import Auto, Outcome

_NOT_FOUND: Final = 404
_OK, _CLIENT_ERROR, _SERVER_ERROR = 200, 400, 500
_REQUEST_TIMEOUT, _TOO_MANY_REQUESTS, _UNAVAILABLE = 408, 429, 503

# Upper limit of a cached body, and of its headers, in characters
_CACHEABLE_LENGTH: Final = 64 * 1024


class HttpResponse(NamedTuple):
    """A service's response.

    Attributes:
        status: The HTTP status.
        headers: By their names in lower case.
        body: As text.
    """

    status: int
    headers: Mapping[str, str]
    body: str

    @property
    def is_cacheable(self) -> bool:
        """Whether it may answer later requests: its status is likely to last, and it is small."""
        is_lasting = _OK <= self.status < _CLIENT_ERROR or self.status == _NOT_FOUND
        headers_length = sum(len(name) + len(value) for name, value in self.headers.items())
        return is_lasting and len(self.body) <= _CACHEABLE_LENGTH and headers_length <= _CACHEABLE_LENGTH

    @property
    def signals_overload(self) -> bool:
        """Whether its status is about the service and not about this request: an overload, or a request for fewer."""
        return self.status in {_REQUEST_TIMEOUT, _TOO_MANY_REQUESTS} or self.status >= _SERVER_ERROR


class AttemptError(Exception):
    """The outcome of an attempt that is not retried: a response that the gates must see.

    Attributes:
        response: The response, from which `trio_asyncio_io.retry_after` reads the delay; None if there is an error.
        error: The network error, or None.
    """

    def __init__(self, response: HttpResponse | None, error: Exception | None = None) -> None:
        super().__init__(response.status if response else error)
        self.response = response
        self.error = error


class RetryableError(AttemptError):
    """The outcome of an attempt that should be retried."""


class RetryableConnectionError(RetryableError, ConnectionError):
    """A connection that failed or broke. Gates take every `ConnectionError` for an overload."""


class HostCapacity(Auto):
    """The gate of a host, which finds how many requests it takes. Only the statuses 429 and 503 are refusals to it.

    With many hosts, some are always down, and some URLs always fail. That concerns their rows, and must neither hold
    back others for minutes nor end the task.
    """

    @classmethod
    def of(cls, auto: Auto) -> HostCapacity:
        """The gate with the arguments of this one."""
        return cls(**auto.configuration(), classify=auto.classify, name=auto.name)

    @property
    def label(self) -> str:
        """That of an `Auto`, which the user has chosen."""
        return "Auto" if self.name is None else f"Auto {self.name!r}"

    def ended(self, now: float, seconds: float, outcome: Outcome, weight: float) -> None:
        """Count a timeout, a connection error and other statuses as the fault of the row."""
        if self.classify is None and outcome.kind == "overload" and not _is_refusal(outcome.error):
            outcome = replace(outcome, kind="error")
        super().ended(now, seconds, outcome, weight)

    def __reduce__(self) -> tuple[Callable[..., Auto], tuple[()]]:
        return partial(HostCapacity, **self.configuration(), classify=self.classify, name=self.name), ()


def _is_refusal(error: Exception | None) -> bool:
    response = error.response if isinstance(error, AttemptError) else None
    return response is not None and response.status == _UNAVAILABLE
