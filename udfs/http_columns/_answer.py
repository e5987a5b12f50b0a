"""The HTTP answer of a service, and the outcomes of an attempt that are something else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

__all__ = ["Answer", "RetryableError"]

_NOT_FOUND: Final = 404
_OK, _CLIENT_ERROR = 200, 400

# The longest body, and the longest headers, that a cache keeps, in characters
_KEPT_LENGTH: Final = 64 * 1024


class Answer(NamedTuple):
    """What a service answered: its status, its headers by their names in lower case, and its body as text."""

    status: int
    headers: Mapping[str, str]
    body: str

    @property
    def may_be_kept(self) -> bool:
        """Whether the next one who asks may be given it as well."""
        is_good = _OK <= self.status < _CLIENT_ERROR or self.status == _NOT_FOUND
        headers_length = sum(len(name) + len(value) for name, value in self.headers.items())
        return is_good and len(self.body) <= _KEPT_LENGTH and headers_length <= _KEPT_LENGTH


class RetryableError(Exception):
    """The outcome of an attempt is worth another one.

    Attributes:
        response: The answer that says so, which `trio_asyncio_io.retry_after` can read, or None.
        error: What went wrong on the way, or None.
    """

    def __init__(self, response: Answer | None, error: Exception | None = None) -> None:
        super().__init__(response.status if response else error)
        self.response = response
        self.error = error
