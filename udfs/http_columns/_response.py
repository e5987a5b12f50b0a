"""Response: the response of a service, and the error that requests another attempt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

__all__ = ["Response", "RetryableError"]

_NOT_FOUND: Final = 404
_OK, _CLIENT_ERROR = 200, 400

# Upper limit of a cached body, and of its headers, in characters
_CACHEABLE_LENGTH: Final = 64 * 1024


class Response(NamedTuple):
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


class RetryableError(Exception):
    """The outcome of an attempt that should be retried.

    Attributes:
        response: The response, from which `trio_asyncio_io.retry_after` reads the delay; None if there is an error.
        error: The network error, or None.
    """

    def __init__(self, response: Response | None, error: Exception | None = None) -> None:
        super().__init__(response.status if response else error)
        self.response = response
        self.error = error
