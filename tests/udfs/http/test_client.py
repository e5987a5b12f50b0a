"""The client is httpx's: the same requests over httpx's own and over ours send the same bytes and give the same."""

from __future__ import annotations

import gzip
import io
import logging
import pickle
import re
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from copy import deepcopy
from typing import Any, ClassVar

import httpx
import pytest
import trio

from tests.udfs.http.serving import listening
from udfs.http import StackTransport, client
from udfs.http._stack_client import StackClient

OK = b"HTTP/1.1 200 OK\r\n"


def whole(body: bytes, *headers: bytes, status: bytes = b"200 OK") -> bytes:
    lines = [b"HTTP/1.1 " + status, b"Content-Length: %d" % len(body), *headers, b"", b""]
    return b"\r\n".join(lines) + body


ANSWERS = {
    b"/json": whole(b'{"temp": 12.5}', b"Content-Type: application/json"),
    b"/text": whole("wärm".encode("latin-1"), b"Content-Type: text/plain; charset=iso-8859-1"),
    b"/empty": whole(b""),
    b"/204": b"HTTP/1.1 204 No Content\r\n\r\n",
    b"/304": b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
    b"/404": whole(b"none", status=b"404 Nothing Here"),
    b"/unknown-status": whole(b"", status=b"299"),
    b"/gzip": whole(gzip.compress(b"weather" * 100), b"Content-Encoding: gzip"),
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


class Recorder:
    """A server that answers by the path, and keeps the requests, byte by byte."""

    def __init__(self) -> None:
        self.requests: list[bytes] = []

    async def serve(self, stream: trio.SocketStream) -> None:
        async with stream:
            while (request := await self._read(stream)) is not None:
                self.requests.append(request)
                path = request.split(b" ")[1].partition(b"?")[0]
                answer = ANSWERS[path]
                if request.startswith(b"HEAD"):
                    answer = answer.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"
                if path == b"/digest" and b"Authorization" in request:
                    answer = whole(b"in")
                await stream.send_all(answer)
                if path in LAST:
                    return

    async def _read(self, stream: trio.SocketStream) -> bytes | None:
        data = b""
        while not self._is_whole(data):
            part = await stream.receive_some()
            if not part:
                return None
            data += bytes(part)
        return data

    @staticmethod
    def _is_whole(data: bytes) -> bool:
        head, end, body = data.partition(b"\r\n\r\n")
        if b"transfer-encoding: chunked" in head.lower():
            return body.endswith(b"0\r\n\r\n")
        _, _, length = head.lower().partition(b"content-length: ")
        return bool(end) and len(body) >= (int(length.split()[0]) if length else 0)


def seen_request(request: httpx.Request) -> dict[str, Any]:
    return {
        "method": request.method,
        "url": request.url,
        "headers": request.headers.raw,
        "content": getattr(request, "_content", None),
        "extensions": request.extensions,
        "stream": type(request.stream),
    }


SEEN = (
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


def seen(response: httpx.Response) -> dict[str, Any]:
    """All that a user can see of a response."""
    assert response.elapsed.total_seconds() >= 0
    assert isinstance(response.stream, httpx.AsyncByteStream)
    for each in (response, *response.history):
        each.__dict__.pop("_cookies", None)  # which cannot be pickled, and is made anew when it is asked for
    copy = pickle.loads(pickle.dumps(response))
    return {
        **{name: getattr(response, name) for name in SEEN},
        "headers": response.headers.raw,
        "content": response.content,
        "text": response.text,
        "repr": repr(response),
        "cookies": dict(response.cookies),
        "extensions": {name: value for name, value in response.extensions.items() if name != "network_stream"},
        "history": [seen(each) for each in response.history],
        "next": None if response.next_request is None else seen_request(response.next_request),
        "request": seen_request(response.request),
        "copy": (copy.status_code, copy.headers.raw, copy.content, copy.elapsed == response.elapsed),
    }


def guessed(body: bytes) -> str:
    return "cp1252" if body else "ascii"


def named(options: dict[str, Any]) -> str:
    """A name that is the same in each run."""
    return re.sub(r" at 0x[0-9a-f]+", "", str(options))


@pytest.fixture(autouse=True)
def same_nonces(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a client makes up for a digest is random."""
    monkeypatch.setattr(httpx.DigestAuth, "_get_client_nonce", lambda *_: b"nonce")


Use = Callable[[httpx.AsyncClient], Awaitable[Any]]


async def outcome(http: httpx.AsyncClient, use: Use) -> Any:
    """What comes of it: a value, a response as it is seen, or an error."""
    try:
        came = await use(http)
    except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, TypeError, RuntimeError, ValueError) as error:
        request = getattr(error, "_request", None)
        return type(error), str(error), None if request is None else seen_request(request)
    if isinstance(came, httpx.Response):
        return seen(came), dict(http.cookies)
    return came


async def same(use: Use, **options: Any) -> Any:
    """Use both clients alike; what came of it, once, if it is the same, bytes on the wire included.

    The timeout is given, as the default of ours is its own.
    """
    recorder = Recorder()
    options = {"timeout": 5.0, **options}
    outcomes, wires = [], []
    async with listening(recorder.serve) as port:
        for make in (httpx.AsyncClient, client):
            async with make(base_url=f"http://127.0.0.1:{port}", trust_env=False, **deepcopy(options)) as http:
                outcomes.append(await outcome(http, use))
            wires.append(recorder.requests)
            recorder.requests = []
    assert outcomes[1] == outcomes[0]
    assert wires[1] == wires[0]
    return outcomes[1]


async def parts() -> AsyncIterator[bytes]:
    for part in (b"wea", b"", b"ther"):
        yield part


def sync_parts() -> Iterator[bytes]:
    yield b"weather"


@pytest.mark.parametrize("follow", [False, True])
@pytest.mark.parametrize("path", [path.decode() for path in ANSWERS])
async def test_every_answer_comes_out_the_same(path: str, follow: bool) -> None:
    await same(lambda http: http.get(path, follow_redirects=follow), max_redirects=3)


@pytest.mark.parametrize("path", ["/json", "/gzip", "/301", "/chunked"])
@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "DELETE", "post", "PUT", "PATCH", "get", "PURGE"])
async def test_every_method_comes_out_the_same(method: str, path: str) -> None:
    await same(lambda http: http.request(method, path, follow_redirects=True))


@pytest.mark.parametrize(
    "options",
    [
        {"params": {"a": "b c", "d": ["1", "2"]}},
        {"params": {}},
        {"headers": {"Accept": "text/plain", "X-Name": "1"}},
        {"headers": [("X", "1"), ("X", "2")]},
        {"headers": {"Host": "example.org"}},
        {"headers": {"Connection": "close"}},
        {"headers": {"Expect": "100-continue"}},
        {"cookies": {"a": "b"}},
        {"auth": ("user", "secret")},
        {"auth": httpx.DigestAuth("user", "secret")},
        {"auth": lambda request: request},
        {"auth": None},
        {"timeout": 3.0},
        {"timeout": None},
        {"timeout": httpx.Timeout(1.0, read=4.0)},
        {"extensions": {"mine": 1}},
        {"extensions": {"timeout": {"read": 4.0}}},
        {"extensions": {"target": b"/json?other"}},
        {"follow_redirects": True},
    ],
    ids=named,
)
@pytest.mark.filterwarnings("ignore:Setting per-request cookies:DeprecationWarning")
async def test_every_option_of_a_get_comes_out_the_same(options: dict[str, Any]) -> None:
    await same(lambda http: http.get("/json", **options))


@pytest.mark.parametrize(
    "options",
    [
        {"content": b"weather"},
        {"content": "wärm"},
        {"content": b""},
        {"data": {"a": "b", "c": ["1", "2"]}},
        {"data": {}},
        {"json": {"a": [1, None, "ä"]}},
        {"json": None},
        {
            "files": {"file": ("name.txt", b"weather" * 20_000, "text/plain")},
            "headers": {"content-type": "multipart/form-data; boundary=b"},
        },
        {"headers": {"Content-Length": "0"}},
    ],
    ids=lambda options: str(options)[:40],
)
@pytest.mark.parametrize("path", ["/json", "/301", "/307"])
async def test_every_body_comes_out_the_same(options: dict[str, Any], path: str) -> None:
    await same(lambda http: http.post(path, follow_redirects=True, **options))


@pytest.mark.parametrize("headers", [{}, {"Content-Length": "7"}], ids=["in chunks", "with a length"])
async def test_a_body_that_is_made_on_the_way_comes_out_the_same(headers: dict[str, str]) -> None:
    await same(lambda http: http.post("/json", content=parts(), headers=headers))


async def test_a_file_comes_out_the_same() -> None:
    await same(
        lambda http: http.post(
            "/json", files={"f": io.BytesIO(b"x")}, headers={"content-type": "multipart/form-data; boundary=b"}
        )
    )


async def test_what_is_not_asynchronous_is_refused_the_same() -> None:
    await same(lambda http: http.post("/json", content=sync_parts()))


@pytest.mark.parametrize(
    "options",
    [
        {"headers": {"X-Client": "1", "Accept": "text/plain"}},
        {"params": {"a": "b"}},
        {"cookies": {"a": "b"}},
        {"auth": ("user", "secret")},
        {"auth": httpx.DigestAuth("user", "secret")},
        {"timeout": None},
        {"default_encoding": "latin-1"},
        {"default_encoding": guessed},
        {"follow_redirects": True},
    ],
    ids=named,
)
@pytest.mark.parametrize("path", ["/json", "/text", "/307", "/cookie", "/digest"])
async def test_every_option_of_a_client_comes_out_the_same(options: dict[str, Any], path: str) -> None:
    await same(lambda http: http.get(path), **options)


async def test_cookies_that_the_server_sets_are_sent_from_then_on() -> None:
    async def use(http: httpx.AsyncClient) -> httpx.Response:
        await http.get("/cookie")
        await http.get("/cookie-and-on", follow_redirects=True)
        return await http.get("/json")

    response, cookies = await same(use)
    assert cookies == {"taste": "salt", "size": "2"}
    assert (b"Cookie", b"taste=salt; size=2") in response["request"]["headers"]


async def test_by_default_only_connecting_has_a_timeout() -> None:
    async with client() as http:
        assert http.timeout == httpx.Timeout(None, connect=30.0)
        assert http.build_request("GET", "http://127.0.0.1/").extensions["timeout"]["read"] is None


async def test_credentials_in_the_url_come_out_the_same() -> None:
    await same(lambda http: http.get(http.base_url.copy_with(username="u", password="p", path="/json")))


# What is changed between two requests holds for the second


def changed_headers(http: httpx.AsyncClient) -> None:
    http.headers["X-Late"] = "1"
    http.headers["Accept"] = "text/plain"
    del http.headers["User-Agent"]


def replaced_headers(http: httpx.AsyncClient) -> None:
    http.headers = {"X-Late": "1", "Host": "example.org"}  # type: ignore[assignment]


def changed_host(http: httpx.AsyncClient) -> None:
    http.base_url = http.base_url.copy_with(host="localhost")


def authentication(http: httpx.AsyncClient) -> None:
    http.auth = ("user", "secret")  # type: ignore[assignment]


class Signed(httpx.Auth):
    """A flow of two requests, and so of two responses."""

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response]:
        request.headers["X-Turn"] = "1"
        yield request
        request.headers["X-Turn"] = "2"
        yield request


def subclassed_authentication(http: httpx.AsyncClient) -> None:
    http.auth = Signed()


def no_authentication(http: httpx.AsyncClient) -> None:
    http.auth = httpx.Auth()


def hooks(http: httpx.AsyncClient) -> None:
    async def asked(request: httpx.Request) -> None:
        request.headers["X-Hook"] = "1"

    async def answered(response: httpx.Response) -> None:
        response.headers["X-Seen"] = "1"

    http.event_hooks["request"].append(asked)
    http.event_hooks["response"].append(answered)


def redirects(http: httpx.AsyncClient) -> None:
    http.follow_redirects = True


def no_redirects_at_all(http: httpx.AsyncClient) -> None:
    http.max_redirects = -1


def cookies(http: httpx.AsyncClient) -> None:
    http.cookies.set("late", "1")


def parameters(http: httpx.AsyncClient) -> None:
    http.params = {"late": "1"}  # type: ignore[assignment]


def timeout(http: httpx.AsyncClient) -> None:
    http.timeout = 3.0  # type: ignore[assignment]


@pytest.mark.parametrize("path", ["/json", "/301", "/digest"])
@pytest.mark.parametrize(
    "change",
    [
        changed_headers,
        replaced_headers,
        changed_host,
        authentication,
        subclassed_authentication,
        no_authentication,
        hooks,
        redirects,
        no_redirects_at_all,
        cookies,
        parameters,
        timeout,
    ],
)
async def test_what_is_changed_on_the_client_holds_for_the_next_request(
    change: Callable[[httpx.AsyncClient], None], path: str
) -> None:
    async def use(http: httpx.AsyncClient) -> Any:
        first = await outcome(http, lambda http: http.get(path))
        change(http)
        return first, await outcome(http, lambda http: http.get(path)), await outcome(http, lambda http: http.get(path))

    first, second, third = await same(use)
    assert third == second
    if path == "/301":
        assert (second == first) is (change is no_authentication)


async def test_what_one_request_asks_for_holds_for_that_one() -> None:
    async def use(http: httpx.AsyncClient) -> Any:
        options: list[dict[str, Any]] = [
            {"headers": {"X": "1"}},
            {},
            {"auth": ("user", "secret")},
            {"auth": Signed()},
            {"auth": None},
            {},
        ]
        return [seen(await http.get("/json", **each))["request"]["headers"] for each in options]

    headers = await same(use)
    assert headers[1] == headers[4] == headers[5]


async def test_what_a_response_says_in_its_headers_is_its_own() -> None:
    async def use(http: httpx.AsyncClient) -> Any:
        first = await http.get("/twice")
        first.headers["X"] = "1"
        del first.headers["Name"]
        first.request.headers["Y"] = "1"
        second = await http.get("/twice")
        return seen(first), seen(second), second.headers.encoding, second.headers.get_list("NAME"), repr(second.headers)

    await same(use)


class Counting(StackClient):
    """A client with steps of its own."""

    steps: ClassVar[list[str]] = []

    def build_request(self, *arguments: Any, **options: Any) -> httpx.Request:
        self.steps.append("build")
        return super().build_request(*arguments, **options)

    async def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        self.steps.append("send")
        return await super().send(request, **options)


async def test_a_step_that_a_subclass_overrides_is_taken() -> None:
    async with listening(Recorder().serve) as port, Counting(transport=StackTransport(), trust_env=False) as http:
        assert (await http.get(f"http://127.0.0.1:{port}/json")).json() == {"temp": 12.5}
        assert http.steps == ["build", "send"]


@pytest.mark.parametrize("url", ["json", "/a/../json", "/json#part", "/json?a=b c", "", "http://[x]/"])
async def test_odd_urls_come_out_the_same(url: str) -> None:
    ANSWERS[b"/"] = whole(b"root")
    await same(lambda http: http.get(httpx.URL(url) if url.startswith("/json#") else url))


async def test_hooks_see_the_same() -> None:
    async def use(http: httpx.AsyncClient) -> Any:
        said: list[Any] = []

        async def asked(request: httpx.Request) -> None:
            request.headers["X-Hook"] = "1"
            said.append(seen_request(request))

        async def answered(response: httpx.Response) -> None:
            said.append((response.status_code, response.is_closed, hasattr(response, "_content")))
            if response.url.path == "/json":
                await response.aread()
            response.headers["X-Seen"] = "1"

        http.event_hooks = {"request": [asked], "response": [answered]}
        response = await http.get("/301", follow_redirects=True)
        return said, seen(response)

    said, _ = await same(use)
    assert len(said) == 4


async def test_a_hook_that_fails_fails_the_request_the_same() -> None:
    async def use(http: httpx.AsyncClient) -> Any:
        async def answered(response: httpx.Response) -> None:
            response.raise_for_status()

        http.event_hooks = {"response": [answered]}
        return await http.get("/404")

    assert (await same(use))[0] is httpx.HTTPStatusError


# Both leave generators of httpx's own to the garbage collector, in which Trio sees a fault
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_a_coding_that_a_hook_declares_is_undone_the_same() -> None:
    async def use(http: httpx.AsyncClient) -> Any:
        async def answered(response: httpx.Response) -> None:
            response.headers["Content-Encoding"] = "gzip"

        http.event_hooks = {"response": [answered]}
        return await http.get("/json")

    assert (await same(use))[0] is httpx.DecodingError


async def test_a_body_that_is_not_in_its_coding_fails_and_leaves_nothing_to_the_collector() -> None:
    async with listening(Recorder().serve) as port, client() as http:
        ANSWERS[b"/no-gzip"] = whole(b"this is no gzip", b"Content-Encoding: gzip")
        with pytest.raises(httpx.DecodingError) as caught:
            await http.get(f"http://127.0.0.1:{port}/no-gzip")
        assert caught.value.request.url.path == "/no-gzip"


@pytest.mark.parametrize("how", ["aiter_raw", "aiter_bytes", "aiter_text", "aiter_lines"])
@pytest.mark.parametrize("path", ["/json", "/gzip", "/chunked", "/text", "/until-the-end", "/empty"])
async def test_a_stream_comes_out_the_same(path: str, how: str) -> None:
    async def use(http: httpx.AsyncClient) -> Any:
        async with http.stream("GET", path) as response:
            came = [part async for part in getattr(response, how)()]
            again = await outcome(http, lambda _: response.aread())
            state = response.is_closed, response.is_stream_consumed, response.num_bytes_downloaded, again
        joined: Any = "".join(came) if how in {"aiter_text", "aiter_lines"} else b"".join(came)
        return joined, state

    await same(use)


async def test_a_stream_that_is_read_in_one_go_comes_out_the_same() -> None:
    async def use(http: httpx.AsyncClient) -> Any:
        async with http.stream("GET", "/json") as response:
            assert not response.is_closed
            return [await response.aread(), await response.aread(), [part async for part in response.aiter_bytes()]]

    assert (await same(use))[0] == b'{"temp": 12.5}'


async def test_a_closed_response_refuses_to_be_read_the_same() -> None:
    async def use(http: httpx.AsyncClient) -> Any:
        async with http.stream("GET", "/json") as response:
            await response.aclose()
            await response.aclose()
        return await response.aread()

    assert (await same(use))[0] is httpx.StreamClosed


async def test_a_request_that_was_built_before_comes_out_the_same() -> None:
    await same(lambda http: http.send(http.build_request("GET", "/json")))
    await same(lambda http: http.send(httpx.Request("GET", http.base_url.join("/json"))))


async def test_the_log_says_the_same(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "httpx")
    await same(lambda http: http.get("/301", follow_redirects=True))
    messages = [record.getMessage() for record in caplog.records if record.name == "httpx"]
    assert len(messages) == 4
    assert messages[:2] == messages[2:]


async def test_a_closed_client_refuses_the_same() -> None:
    async def use(http: httpx.AsyncClient) -> Any:
        await http.aclose()
        return await http.get("/json")

    assert (await same(use))[0] is RuntimeError


async def test_a_client_that_was_used_cannot_be_entered_the_same() -> None:
    async def use(http: httpx.AsyncClient) -> Any:
        await http.get("/json")
        async with http:
            pass

    assert (await same(use))[0] is RuntimeError


@pytest.mark.parametrize("make", [httpx.AsyncClient, client])
async def test_a_client_that_was_used_unentered_cannot_be_entered(make: Callable[..., httpx.AsyncClient]) -> None:
    async with listening(Recorder().serve) as port:
        http = make(trust_env=False)
        await http.get(f"http://127.0.0.1:{port}/json")
        with pytest.raises(RuntimeError, match="more than once"):
            await http.__aenter__()
        await http.aclose()


async def test_an_unknown_option_is_refused_the_same() -> None:
    async with client() as http:
        with pytest.raises(TypeError, match="colour"):
            http.build_request("GET", "http://127.0.0.1/", colour="red")
