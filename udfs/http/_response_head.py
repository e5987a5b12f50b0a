"""ResponseHead: status line and headers of a response, and how its body ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["Fields", "ResponseHead"]

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
