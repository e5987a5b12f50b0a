"""Compares our clients with those of httpx and httpx2: the bytes that they send, and what their users see."""

from __future__ import annotations

import gzip
import pickle
import re
import zlib
from collections.abc import Awaitable, Callable
from copy import deepcopy
from functools import partial
from types import ModuleType
from typing import Any

import httpx
import httpx2
import trio

from tests.udfs.http.serving import client_context, listening
from udfs.http import client
from udfs.http.httpx2 import client as httpx2_client

OURS: dict[ModuleType, Callable[..., Any]] = {
    httpx: partial(client, cookies=True),
    httpx2: partial(httpx2_client, cookies=True),
}

OK = b"HTTP/1.1 200 OK\r\n"


def whole(body: bytes, *headers: bytes, status: bytes = b"200 OK") -> bytes:
    lines = [b"HTTP/1.1 " + status, b"Content-Length: %d" % len(body), *headers, b"", b""]
    return b"\r\n".join(lines) + body


RESPONSES = {
    b"/": whole(b"root"),
    b"/json": whole(b'{"temp": 12.5}', b"Content-Type: application/json"),
    b"/text": whole("wärm".encode("latin-1"), b"Content-Type: text/plain; charset=iso-8859-1"),
    b"/empty": whole(b""),
    b"/204": b"HTTP/1.1 204 No Content\r\n\r\n",
    b"/304": b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
    b"/404": whole(b"none", status=b"404 Nothing Here"),
    b"/unknown-status": whole(b"", status=b"299"),
    b"/gzip": whole(gzip.compress(b"weather" * 100), b"Content-Encoding: gzip"),
    b"/not-gzip": whole(b"this is text", b"Content-Encoding: gzip"),
    b"/deflate": whole(zlib.compress(b"weather" * 100), b"Content-Encoding: deflate"),
    b"/unknown-coding": whole(b"weather", b"Content-Encoding: rot13"),
    b"/chunked": OK + b"Transfer-Encoding: chunked\r\n\r\n3\r\nwea\r\n4\r\nther\r\n0\r\nTrailer: 1\r\n\r\n",
    b"/hints": b"HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n" + whole(b"weather"),
    b"/until-the-end": OK + b"\r\nweather",
    b"/old": b"HTTP/1.0 200 OK\r\nContent-Length: 7\r\n\r\nweather",
    b"/twice": whole(b"", b"Name: 1", b"name: 2", b"Latin: \xe9"),
    b"/cookie": whole(b"", b"Set-Cookie: taste=sweet; Path=/", b"Set-Cookie: size=2; Path=/"),
    b"/cookie-and-on": whole(b"", b"Set-Cookie: taste=salt; Path=/", b"Location: /json", status=b"302 Found"),
    b"/301": whole(b"moved", b"Location: /json", status=b"301 Moved"),
    b"/303": whole(b"", b"Location: json?a=b#c", status=b"303 See Other"),
    b"/307": whole(b"", b"Location: /json", status=b"307 Temporary"),
    b"/308-gzip": whole(gzip.compress(b"x"), b"Location: /json", b"Content-Encoding: gzip", status=b"308 Permanent"),
    b"/300": whole(b"", b"Location: /json", status=b"300 Multiple"),
    b"/loop": whole(b"", b"Location: /loop", status=b"302 Found"),
    b"/bad-location": whole(b"", b"Location: http://[x]/", status=b"302 Found"),
    b"/digest": whole(b"", b'WWW-Authenticate: Digest realm="r", nonce="n", qop="auth"', status=b"401 No"),
}
LAST = (b"/until-the-end", b"/old")
PATHS = sorted(path.decode() for path in RESPONSES if path != b"/not-gzip")


class Recorder:
    """A server that responds by the path and records the requests, byte by byte."""

    def __init__(self) -> None:
        self.requests: list[bytes] = []

    async def serve(self, stream: trio.SocketStream) -> None:
        async with stream:
            while (request := await self._read(stream)) is not None:
                self.requests.append(request)
                path = request.split(b" ")[1].partition(b"?")[0]
                await stream.send_all(self._response(request, path))
                if path in LAST:
                    return

    @staticmethod
    def _response(request: bytes, path: bytes) -> bytes:
        if path == b"/digest" and b"Authorization" in request:
            return whole(b"in")
        response = RESPONSES[path]
        return response.partition(b"\r\n\r\n")[0] + b"\r\n\r\n" if request.startswith(b"HEAD") else response

    async def _read(self, stream: trio.SocketStream) -> bytes | None:
        data = b""
        while length_of_request(data) is None:
            part = await stream.receive_some()
            if not part:
                return None
            data += bytes(part)
        return data


def length_of_request(data: bytes) -> int | None:
    """The length of the first request in the data; None if it has not arrived."""
    head, end, body = data.partition(b"\r\n\r\n")
    if not end:
        return None
    start = len(head) + len(end)
    if re.search(rb"(?im)^transfer-encoding: *chunked\r?$", head):
        last = body.find(b"0\r\n\r\n")
        return None if last < 0 else start + last + 5
    found = re.search(rb"(?im)^content-length: *(\d+)\r?$", head)
    length = start + (int(found[1]) if found else 0)
    return length if len(data) >= length else None


def view_of_request(request: Any) -> dict[str, Any]:
    return {
        "method": request.method,
        "url": request.url,
        "headers": request.headers.raw,
        "content": getattr(request, "_content", None),
        "extensions": request.extensions,
        "stream": type(request.stream),
    }


ATTRIBUTES = (
    "status_code",
    "http_version",
    "reason_phrase",
    "url",
    "encoding",
    "charset_encoding",
    "default_encoding",
    "is_closed",
    "is_stream_consumed",
    "has_redirect_location",
    "num_bytes_downloaded",
    "links",
)


def view(response: Any) -> dict[str, Any]:
    """Everything that a user can see of a response."""
    assert response.elapsed.total_seconds() >= 0
    assert isinstance(response.stream, (httpx.AsyncByteStream, httpx2.AsyncByteStream))
    for each in (response, *response.history):
        each.__dict__.pop("_cookies", None)  # cannot be pickled; httpx makes it again when needed
    copy = pickle.loads(pickle.dumps(response))
    return {
        **{name: getattr(response, name) for name in ATTRIBUTES},
        "headers": response.headers.raw,
        "content": response.content,
        "text": response.text,
        "repr": repr(response),
        "cookies": dict(response.cookies),
        "extensions": {name: value for name, value in response.extensions.items() if name != "network_stream"},
        "history": [view(each) for each in response.history],
        "next": None if response.next_request is None else view_of_request(response.next_request),
        "request": view_of_request(response.request),
        "copy": (copy.status_code, copy.headers.raw, copy.content, getattr(copy, "_elapsed", None) == response.elapsed),
    }


Use = Callable[[Any], Awaitable[Any]]

ERRORS = (
    *(error for library in OURS for error in (library.HTTPError, library.InvalidURL, library.StreamError)),
    *(TypeError, RuntimeError, ValueError, LookupError),
)


async def outcome(http: Any, use: Use) -> Any:
    """A value, the view of a response, or an error."""
    try:
        result = await use(http)
    except ERRORS as error:
        request = getattr(error, "_request", None)
        return type(error), str(error), None if request is None else view_of_request(request)
    if isinstance(result, (httpx.Response, httpx2.Response)):
        return view(result), dict(http.cookies)
    return result


async def same(use: Use, library: ModuleType = httpx, **options: Any) -> Any:
    """Use the library's client and ours; assert that outcomes and bytes on the wire are equal, and return the outcome.

    Timeout and cookies are given, because the defaults of `client` differ.
    """
    recorder = Recorder()
    options = {"timeout": 5.0, **options}
    outcomes, wires = [], []
    async with listening(recorder.serve) as port:
        given: dict[str, Any] = {
            "base_url": f"http://127.0.0.1:{port}",
            "trust_env": False,
            "verify": client_context(),
        }
        for make in (library.AsyncClient, OURS[library]):
            async with make(**given, **deepcopy(options)) as http:
                await http.get("/", auth=None, cookies=None)  # `client` sends its first request in another way
                recorder.requests = []
                outcomes.append(await outcome(http, use))
            wires.append(recorder.requests)
            recorder.requests = []
    assert outcomes[1] == outcomes[0]
    assert wires[1] == wires[0]
    return outcomes[1]
