"""CompleteResponse: a response with its whole body. It makes attributes that are rarely used on first access."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from functools import cached_property
from time import perf_counter
from typing import Any, Final

import httpx

from ._exchange import WholeResponse
from ._response import Response
from ._response_head import ResponseHead
from ._shortcuts import SETS_CONTENT, headers_of, holds

__all__ = ["MAKES_RESPONSES", "CompleteResponse"]

_OK, _MULTIPLE_CHOICES = 200, 300


# The attributes that are made when they are looked at, and what they are made of
_MADE_LATER: Final = ("_elapsed", "_request", "extensions", "headers", "history", "stream")
_SOURCES: Final = frozenset({"_make_request", "_seconds", "_whole"})


class _Read(httpx.AsyncByteStream):
    """The stream of a response that was read."""

    def __aiter__(self) -> AsyncIterator[bytes]:
        raise httpx.StreamClosed


class CompleteResponse(Response):
    """Behaves as a `Response` after `aread`. It shares nothing that can be changed with another response.

    Args:
        whole: What has arrived.
        request: Makes the request that is answered.
        sent_at: When it was sent, by `time.perf_counter`.
        default_encoding: As for `httpx.Response`.
    """

    is_closed = is_stream_consumed = True
    next_request: httpx.Request | None = None
    _num_bytes_downloaded = 0

    def __init__(
        self, whole: WholeResponse, request: Callable[[], httpx.Request], sent_at: float, default_encoding: Any
    ) -> None:
        # Without httpx's constructor, which makes all of what follows
        self.status_code = whole.head.status
        self._content = whole.content
        self.default_encoding = default_encoding
        self.has_cookies = whole.head.sets_cookies
        self._received = whole.received
        self._whole, self._make_request = whole, request
        self._seconds = perf_counter() - sent_at

    async def aread(self) -> bytes:
        """Return the response content."""
        return self._content

    def raise_for_status(self) -> CompleteResponse:
        """Raise an `httpx.HTTPStatusError` unless the status is 2xx; return the response otherwise."""
        if not _OK <= self.status_code < _MULTIPLE_CHOICES:
            super().raise_for_status()
        return self

    def __getstate__(self) -> dict[str, Any]:
        for name in _MADE_LATER:
            getattr(self, name)
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name not in _SOURCES}

    @cached_property
    def headers(self) -> httpx.Headers:  # type: ignore[override]
        return headers_of(self._whole.head.fields)

    @cached_property
    def extensions(self) -> dict[str, Any]:  # type: ignore[override]
        return {"http_version": self._whole.head.version, "reason_phrase": self._whole.head.reason}

    @cached_property
    def history(self) -> list[httpx.Response]:  # type: ignore[override]
        return []

    @cached_property
    def stream(self) -> httpx.AsyncByteStream:  # type: ignore[override]
        return _Read()

    @cached_property
    def _request(self) -> httpx.Request:  # type: ignore[override]
        return self._make_request()

    @cached_property
    def _elapsed(self) -> timedelta:  # type: ignore[override]
        return timedelta(seconds=self._seconds)


def _is_an_httpx_response() -> bool:
    """Whether every attribute that httpx's constructor sets, and its `elapsed`, is set or made here."""
    head = ResponseHead(
        b"HTTP/1.1", _OK, b"OK", [(b"A", b"a", b"b")], frozenset({b"a"}), 1, is_chunked=False, keeps_alive=True
    )
    made = CompleteResponse(WholeResponse(head, b"x", 1), lambda: httpx.Request("GET", "http://h"), 0.0, "utf-8")
    theirs = httpx.Response(_OK, headers=[(b"A", b"b")], stream=httpx.ByteStream(b"x"))
    theirs.elapsed = timedelta()
    return all(hasattr(made, name) for name in vars(theirs))


MAKES_RESPONSES: Final = SETS_CONTENT and holds(_is_an_httpx_response)
