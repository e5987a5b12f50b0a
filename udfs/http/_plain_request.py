"""PlainRequest: a request as bytes. It becomes an `httpx.Request` only if the user's code reads it."""

from __future__ import annotations

from typing import Any, Final

import httpx

from ._origin import origin_of
from ._request_head import render_head
from ._request_writer import RequestWriter
from ._shortcuts import ENCODES_JSON, encode_json, fields_of, url_of
from ._url import plain_parts

__all__ = ["PlainRequest", "PlainRequests"]

_CACHED: Final = 64  # templates
_FRAMING: Final = frozenset({"content-length", "transfer-encoding"})
_SAMPLES: Final[dict[str, dict[str, Any]]] = {"": {}, "json": {"json": 0}, "content": {"content": b"0"}}

Timeouts = dict[str, float | None]


class _Template:
    """What the requests of a client have in common that differ only in their URL's path and query, and in their body.

    It is made from a request that httpx has built, and that is checked as every request.

    Args:
        sample: The request to the origin itself; with a body of one byte if the requests have a body.
        base: The client's base URL at that time.
        common: The client's headers at that time.
    """

    __slots__ = ("_ends", "_sample", "base", "closes_connection", "common", "method", "origin", "path")

    def __init__(self, sample: httpx.Request, base: httpx.URL, common: list[Any]) -> None:
        self._sample = sample
        self.base, self.common = base, list(common)
        self.method, self.path = sample.method, sample.url.path
        self.origin = origin_of(sample)
        head = render_head(sample)
        self.closes_connection = head.closes_connection
        _, mark, fields = head.data.partition(b" HTTP/1.1\r\n")
        self._ends = [mark + fields]
        if sample.content:
            self._ends = (mark + fields).split(b"Content-Length: 1\r\n")
            self._ends[0] += b"Content-Length: "

    def data(self, target: str, body: bytes | None) -> bytes:
        """Return a request, as it is sent."""
        start = f"{self.method} {target}".encode()
        if body is None:
            return start + self._ends[0]
        return b"%b%b%d\r\n%b%b" % (start, self._ends[0], len(body), self._ends[1], body)

    def request(self, path: str, query: str | None, body: bytes | None, timeouts: Timeouts) -> httpx.Request:
        """Return a request as httpx builds it."""
        headers = self._sample.headers.copy()
        if body is not None:
            headers["Content-Length"] = str(len(body))
        url = url_of(self._sample.url, path, query)
        extensions = {"timeout": timeouts}
        return httpx.Request(self.method, url, headers=headers, content=body, extensions=extensions)


class PlainRequest:
    """A request without cookies, authentication and hooks, to a plain URL, with JSON, bytes or nothing as its body.

    Attributes:
        origin: Where it goes.
        writer: Writes it.
    """

    __slots__ = ("_body", "_path", "_query", "_template", "origin", "writer")

    def __init__(
        self, template: _Template, path: str, query: str | None, body: bytes | None, timeouts: Timeouts
    ) -> None:
        self._template, self._path, self._query, self._body = template, path, query, body
        self.origin = template.origin
        data = template.data(path if query is None else f"{path}?{query}", body)
        self.writer = RequestWriter(template.method, data, timeouts, closes_connection=template.closes_connection)

    def as_httpx(self) -> httpx.Request:
        """Return the request that httpx would have built."""
        return self._template.request(self._path, self._query, self._body, self.writer.timeouts)


class PlainRequests:
    """Builds the plain requests of one client.

    Args:
        client: Its base URL and headers apply as they are when a request is built.
    """

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client
        self._templates: dict[Any, _Template] = {}

    def build(
        self, method: str, url: httpx.URL | str, content: Any, json: Any, headers: Any, *, timeouts: Timeouts
    ) -> PlainRequest | None:
        """Return a request; None if it is not plain."""
        parts = plain_parts(url)
        if parts is None:
            return None
        origin, path, query = parts
        kind = ""
        body: bytes | None = None
        if json is not None:
            if content is not None or not ENCODES_JSON:
                return None
            kind, body = "json", encode_json(json)
        elif content is not None:
            if type(content) is not bytes or not content:
                return None
            kind, body = "content", content
        template = self._template(method, origin, path, kind, headers)
        if template is None:
            return None
        if template.path != "/":
            path = template.path + path[1:]
        return PlainRequest(template, path, query, body, timeouts)

    def _template(self, method: str, origin: str | None, path: str, kind: str, headers: Any) -> _Template | None:
        client = self._client
        if origin is None and path.startswith("//"):
            return None
        try:
            key = (method, origin, kind, None if headers is None else tuple(headers.items()))
            template = self._templates.get(key)
        except (AttributeError, TypeError):  # not a mapping, or a value that cannot be hashed
            return None
        if (
            template is None
            or template.common != fields_of(client.headers)
            or (origin is None and template.base is not client.base_url)
        ):
            template = self._new_template(method, origin, kind, headers)
            if template is not None:
                if len(self._templates) >= _CACHED:
                    self._templates.clear()
                self._templates[key] = template
        return template

    def _new_template(self, method: str, origin: str | None, kind: str, headers: Any) -> _Template | None:
        client = self._client
        names = {name.lower() for name in (*client.headers, *httpx.Headers(headers))}
        if method.upper() == "CONNECT" or names & _FRAMING:
            return None
        try:
            sample = client.build_request(method, f"{origin or ''}/", headers=headers, **_SAMPLES[kind])
            return _Template(sample, client.base_url, fields_of(client.headers))
        except (httpx.InvalidURL, httpx.RequestError):
            return None  # the long way raises the error
