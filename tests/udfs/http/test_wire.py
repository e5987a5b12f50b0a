"""The bytes on the wire: for random and hostile requests, they are those of httpx (or httpx2) itself.

Each case makes the same requests with the library's own client and with ours, to two servers that record every byte,
respond with redirects and challenges, and lose the framing of a connection whenever the bytes do. The first request of
our client takes another way than the later ones, so each case makes several.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import httpx2
import pytest
import trio
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.support import PATIENCE
from tests.udfs.http.comparing import ERRORS, OURS, length_of_request
from tests.udfs.http.serving import client_context

SMUGGLED = b"\r\nGET /admin HTTP/1.1\r\nHost: h\r\n\r\n"

VALUES = [
    *("", "1", " 1 ", "a\tb", "Content-Length: 1", "Content-Length: 0\r\n", "x\r\nContent-Length: 1"),
    *("x\r\n\r\nGET /admin HTTP/1.1", "x\ny", "x\ry", "x\x00y", "Transfer-Encoding: chunked"),
    *("é", b"\xff\xfe", "close", "a" * 9_000),
]
NAMES = ["X-Trace", "x-trace", "Accept", "Authorization", "Cookie", "Connection", "User-Agent", "X Y", "X:", "É", ""]

HEADERS = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(VALUES)), max_size=3)

SEGMENTS = [
    *("a", "b c", "ä", ".", "..", "", "%20", "%2F", "%2e", "%zz", "%", "a:b", "a@b", "a;b", "a,b", "~", "+", "\\"),
    *(
        "'",
        '"',
        "<>",
        "[x]",
        "{x}",
        "|",
        "^",
        "`",
        "a?b=c",
        "?",
        "a#f",
        "?x=\x7f",
        "a\r\nb",
        "\t",
        "?q=a b&q=ä",
        "?a=%",
    ),
    *(".a", "..a", "a.", "HTTP", "$", "!", "*", "(x)", "=", "&", "?a?b", "?a=/../b", "\U0001f600"),
]
PATHS = st.builds(
    lambda segments: "/" + "/".join(segments), st.lists(st.sampled_from(SEGMENTS), max_size=4)
) | st.builds("/".join, st.lists(st.sampled_from(SEGMENTS), max_size=3))
USERS = st.sampled_from(["", "", "", "user:pass@", "user@", ":pass@", "us%20er:p%40ss@", "ü:ß@"])
BASES = st.sampled_from(
    ["", "/", "/api", "/api/", "/a b/", "/ä", "?q=1", "/a?b=c", "/a/../b/", "//", "/a//", "/./", "/#f"]
)


@dataclass(frozen=True)
class Request:
    """One request. `url` is joined with the base URL, unless an origin is given."""

    url: str
    origin: int | None = None  # the number of a server
    user: str = ""
    method: str = "GET"
    headers: Any = None
    options: dict[str, Any] = field(default_factory=dict)
    body: str = "none"
    auth: str = "default"


@dataclass(frozen=True)
class Case:
    """Requests of one client, and the scripted responses: a status and a Location or a challenge."""

    requests: list[Request]
    base: str = ""
    user: str = ""
    headers: Any = None
    options: dict[str, Any] = field(default_factory=dict)
    auth: str = "default"
    responses: list[tuple[int, str]] = field(default_factory=list)


async def _generated() -> AsyncIterator[bytes]:
    for part in (b"wea", b"", SMUGGLED):
        yield part


def _synchronous() -> Iterator[bytes]:
    yield b"weather"


BODIES: dict[str, Callable[[], dict[str, Any]]] = {
    "none": dict,
    "bytes": lambda: {"content": b"weather"},
    "smuggled": lambda: {"content": SMUGGLED},
    "empty": lambda: {"content": b""},
    "text": lambda: {"content": "wärm"},
    "json": lambda: {"json": {"a": [1, None, "ä", "Content-Length: 1\r\n"]}},
    "json null": lambda: {"json": None},
    "form": lambda: {"data": {"a": "b c", "ä": ["1", "2"]}},
    "empty form": lambda: {"data": {}},
    "files": lambda: {"files": {"f": ('n"a\r\nme', BytesIO(SMUGGLED), "text/plain")}, "data": {"a": "b"}},
    "generator": lambda: {"content": _generated()},
    "wrong generator": lambda: {"content": _synchronous()},
}


def authentication(library: ModuleType, name: str) -> dict[str, Any]:
    kinds: dict[str, Callable[[], Any]] = {
        "none": lambda: None,
        "basic": lambda: ("us:er", "pä\r\nss"),
        "digest": lambda: library.DigestAuth("user", "secret"),
        "function": lambda: _signed,
    }
    return {} if name == "default" else {"auth": kinds[name]()}


def _signed(request: Any) -> Any:
    request.headers["X-Signature"] = str(request.url)
    return request


# One hostile part hides the others if it makes the request fail, so most requests have only few of them
SIMPLE = st.builds(Request, url=PATHS, origin=st.sampled_from([None, 0]), body=st.sampled_from(["none", "json"]))
HOSTILE = st.builds(
    Request,
    url=PATHS,
    origin=st.sampled_from([None, None, 0, 1]),
    user=USERS,
    method=st.sampled_from(
        ["GET", "GET", "get", "POST", "PUT", "HEAD", "DELETE", "OPTIONS", "PURGE", "G T", "CONNECT "]
    ),
    headers=st.none() | HEADERS | HEADERS.map(dict),
    options=st.fixed_dictionaries(
        {},
        optional={
            "params": st.sampled_from([None, {}, {"a": "b c", "ä": ["1", "2"]}, "x=y z", [("a", "1"), ("a", "2")]]),
            "cookies": st.sampled_from([None, {}, {"a": "b"}, {"a": "b;c", "é": "\r\nX: y"}]),
            "follow_redirects": st.booleans(),
            "timeout": st.sampled_from([None, 30.0]),
        },
    ),
    body=st.sampled_from(sorted(BODIES)),
    auth=st.sampled_from(["default", "default", "none", "basic", "digest", "function"]),
)

REQUESTS = st.one_of(SIMPLE, SIMPLE, SIMPLE.map(lambda request: replace(request, method="POST")), HOSTILE)

# {0} and {1} are the ports of the servers
LOCATIONS = [
    *("/moved", "moved?a=b#c", "..", "//127.0.0.1:{1}/m", "http://127.0.0.1:{1}/m", "http://127.0.0.1:{0}/a b/ä"),
    *("http://user:pass@127.0.0.1:{1}/", "http://127.0.0.1:{1}", "?x=y", "", "#f"),
    *("http://[x]/", "http://xn--/", "ftp://h/"),
    *("http:///m", "/%zz/../x", "/a\tb", "http://127.0.0.1:{1}/\xe9", "HTTP://127.0.0.1:{0}/upper", "https:/x"),
]
CHALLENGES = [
    'Digest realm="r", nonce="n", qop="auth"',
    'Digest realm="r", nonce="n"',
    "Digest foo",
    "Basic",
    'Digest realm="r',
]
RESPONSES = st.lists(
    st.tuples(st.sampled_from([301, 302, 303, 307, 308, 300, 304]), st.sampled_from(LOCATIONS))
    | st.tuples(st.just(401), st.sampled_from(CHALLENGES))
    | st.tuples(st.just(200), st.sampled_from(["", "a=b; Path=/", "c=d"])),
    max_size=4,
)

CASES = st.builds(
    Case,
    requests=st.lists(REQUESTS, min_size=2, max_size=5),
    base=BASES,
    user=USERS,
    headers=st.one_of(st.none(), st.none(), st.none(), HEADERS),
    options=st.fixed_dictionaries(
        {},
        optional={
            "params": st.sampled_from([{"k": "1"}]),
            "cookies": st.sampled_from([{"s": "1"}]),
            "follow_redirects": st.booleans(),
            "max_redirects": st.sampled_from([0, 2]),
        },
    ),
    auth=st.sampled_from(["default", "default", "default", "basic", "digest"]),
    responses=RESPONSES,
)


class Recorder:
    """Two servers that record what arrives and respond by the script, then with 200."""

    def __init__(self, responses: list[tuple[int, str]]) -> None:
        self.script = list(responses)
        self.ports: list[int] = []
        self.received = [b"", b""]
        self._open = 0
        self._changed = trio.Event()

    async def serve(self, server: int, stream: trio.SocketStream) -> None:
        self._open += 1
        async with stream:
            data = b""
            while part := bytes(await stream.receive_some()):
                self.received[server] += part
                data += part
                while (length := length_of_request(data)) is not None:
                    request, data = data[:length], data[length:]
                    await stream.send_all(self._response(request))
        self._open -= 1
        self._changed.set()
        self._changed = trio.Event()

    async def finished(self) -> None:
        """Wait until every connection is closed, so that everything was recorded."""
        while self._open:
            await self._changed.wait()

    def _response(self, request: bytes) -> bytes:
        status, text = self.script.pop(0) if self.script else (200, "")
        name = {200: "Set-Cookie", 401: "WWW-Authenticate"}.get(status, "Location")
        value = text.format(*self.ports) if name == "Location" else text
        head = f"HTTP/1.1 {status} X\r\nContent-Length: 2\r\n{name}: {value}\r\n\r\n".encode("latin-1")
        return head if request.startswith(b"HEAD ") or status == 304 else head + b"{}"


def scrubbed(data: bytes) -> bytes:
    """The bytes without what is random: boundaries of forms, and nonces of digests."""
    for number, boundary in enumerate(re.findall(rb"boundary=([0-9a-f]{32})", data)):
        data = data.replace(boundary, b"boundary-%d" % number)
    return re.sub(rb'(cnonce|response)="[0-9a-f]*"', rb"\1=...", data)


async def outcomes_of(library: ModuleType, make: Callable[..., Any], case: Case, ports: list[int]) -> list[Any]:
    """What the user gets for each request: the status and the final URL, or the type of the error."""
    options = {
        "base_url": f"http://{case.user}127.0.0.1:{ports[0]}{case.base}",
        "headers": case.headers,
        "trust_env": False,
        "verify": client_context(),
        "timeout": PATIENCE,
        **case.options,
        **authentication(library, case.auth),
    }
    try:
        http = make(**options)
    except (library.InvalidURL, TypeError, ValueError) as error:
        return [type(error)]
    outcomes: list[Any] = []
    async with http:
        for request in case.requests:
            url = request.url
            if request.origin is not None:
                path = url if url.startswith(("/", "?", "#")) else "/" + url
                url = f"http://{request.user}127.0.0.1:{ports[request.origin]}{path}"
            given = {**request.options, **BODIES[request.body](), **authentication(library, request.auth)}
            try:
                response = await http.request(request.method, url, headers=request.headers, **given)
            except ERRORS as error:
                # httpx raises the codec's error for the host of a Location, and our transport an error of httpx
                outcomes.append(library.RemoteProtocolError if isinstance(error, UnicodeError) else type(error))
            else:
                outcomes.append((response.status_code, str(response.url), len(response.history), response.text))
    return outcomes


async def compared(library: ModuleType, case: Case) -> list[bytes]:
    """Assert that both clients send the same bytes, and return them."""
    results = []
    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            recorder = Recorder([])
            for server in range(2):
                serve = partial(trio.serve_tcp, partial(recorder.serve, server), 0, host="127.0.0.1")
                [listener] = await nursery.start(serve)
                recorder.ports.append(listener.socket.getsockname()[1])
            for make in (library.AsyncClient, OURS[library]):
                recorder.script, recorder.received = list(case.responses), [b"", b""]
                outcomes = await outcomes_of(library, make, case, recorder.ports)
                await recorder.finished()
                results.append((outcomes, [scrubbed(each) for each in recorder.received]))
            nursery.cancel_scope.cancel()
    stock, ours = results
    assert ours == stock
    received: list[bytes] = ours[1]
    return received


@pytest.mark.filterwarnings("ignore:Setting per-request cookies:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")
@pytest.mark.parametrize("library", [httpx, httpx2], ids=["httpx", "httpx2"])
@settings(max_examples=2 * settings().max_examples, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(CASES)
@example(Case([Request("/x"), Request("/x"), Request("/y", body="json", method="POST")], user="user:pass@"))
@example(Case([Request("x"), Request("/x"), Request("/x?y")], base="/a b/"))
@example(Case([Request("/x"), Request("/x?y"), Request("?z")], base="/a?b=c"))
@example(Case([Request("/x"), Request("/a/../b"), Request("/./a"), Request("/a//b/..", origin=0)]))
@example(Case([Request("/"), Request("/", method="POST", body="smuggled", headers={"X-Trace": "Content-Length: 1"})]))
@example(Case([Request("/"), Request("/", method="POST", body="json", headers={"X-Trace": "Content-Length: 1"})]))
@example(
    Case(
        [Request("/"), Request("/", method="POST", body="json", headers={"X-Api-Key": "k", "Authorization": "s"})],
        options={"follow_redirects": True},
        responses=[(200, ""), (307, "http://127.0.0.1:{1}/m")],
    )
)
def test_the_bytes_of_any_request_are_those_of_the_library(library: ModuleType, case: Case) -> None:
    trio.run(compared, library, case)


@pytest.mark.parametrize("trust_env", [False, True])
async def test_a_netrc_file_is_not_read(trust_env: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login user password secret\n")
    monkeypatch.setenv("NETRC", str(netrc))
    case = Case([Request("/"), Request("/")], options={"trust_env": trust_env})
    for library in OURS:
        received, _ = await compared(library, case)
        assert b"authorization" not in received.lower()
        assert received.count(b"GET / HTTP/1.1") == 2
