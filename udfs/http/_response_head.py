"""ResponseHead: status line and headers of a response, and how its body ends."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

__all__ = ["Fields", "ResponseHead"]

# Plain numbers: a comparison with a member of `httpx.codes`, an enumeration, is much slower
_FIRST_STATUS: Final = 100
_SWITCHING_PROTOCOLS: Final = 101
_CONTROL: Final = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_SHOWN: Final = 60  # bytes of the server's data, in an error
_COOKIES: Final = frozenset({b"set-cookie", b"set-cookie2"})

Fields = list[tuple[bytes, bytes, bytes]]


@dataclass(eq=False, slots=True)
class ResponseHead:
    """The head of a final response. It may be shared by responses with the same head: it is not changed.

    Attributes:
        version, status, reason: The status line.
        fields: The headers: the name as it was received, the name in lower case, and the value.
        names: The names of the headers, in lower case.
        length: Bytes of the body, by its Content-Length; None if it has none.
        is_chunked: Whether the body is in chunks.
        keeps_alive: Whether the server keeps the connection open.
    """

    version: bytes
    status: int
    reason: bytes
    fields: Fields
    names: frozenset[bytes]
    length: int | None
    is_chunked: bool
    keeps_alive: bool

    def values(self, name: bytes) -> list[bytes]:
        """Return the values of a header, by its name in lower case."""
        return [value for _, lowered, value in self.fields if lowered == name] if name in self.names else []

    def problem(self, transfer_codings: list[bytes]) -> str:
        """Return why the head is refused although llhttp accepts it; "" if it is not.

        Args:
            transfer_codings: The values of its Transfer-Encoding, in lower case, with the whitespace after them.
        """
        if self.status == _SWITCHING_PROTOCOLS:
            return "the server switches to another protocol (101), and this client supports HTTP/1.1 only"
        if self.status < _FIRST_STATUS:
            return f"the status is {self.status}; statuses start at {_FIRST_STATUS}"
        if self.version not in (b"HTTP/1.1", b"HTTP/1.0"):
            return f"the response is in {self.version.decode()}, not in HTTP/1.1 or HTTP/1.0"
        if _CONTROL.search(self.reason):
            return f"the reason phrase has a control character: {self.reason[:_SHOWN]!r}"
        return self._problem_of_framing(transfer_codings)

    @property
    def sets_cookies(self) -> bool:
        """Whether the server sets a cookie."""
        return not self.names.isdisjoint(_COOKIES)

    @property
    def ends_with_connection(self) -> bool:
        """Whether the body has neither a length nor chunks."""
        return self.length is None and not self.is_chunked

    @property
    def codings(self) -> list[str]:
        """The content codings, in the order in which they were applied."""
        return [
            part.strip() for value in self.values(b"content-encoding") for part in value.decode("latin-1").split(",")
        ]

    def _problem_of_framing(self, transfer_codings: list[bytes]) -> str:
        lengths = self.values(b"content-length")
        if transfer_codings not in ([], [b"chunked"]):
            return f"the transfer coding must be chunked, once, got {b', '.join(transfer_codings)[:_SHOWN]!r}"
        if len(lengths) > 1 or (lengths and self.length is None):
            return f"the Content-Length must be one number, got {b', '.join(lengths)[:_SHOWN]!r}"
        return ""
