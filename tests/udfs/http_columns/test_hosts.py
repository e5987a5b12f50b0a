"""Which hosts a row may reach: by name, by address, and after a redirect; and what a redirect carries there."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.udfs.http.serving import Peer, ok, serving
from tests.udfs.http_columns.working import get, request, responding, results_of, work
from udfs.http_columns import _requests
from udfs.http_columns._hosts import HostRule


@pytest.mark.parametrize(
    ("rule", "allowed", "refused"),
    [
        ("example.org", ["http://example.org/", "https://EXAMPLE.org:8443/"], ["http://a.example.org/", "http://e/"]),
        ("*.example.org", ["http://a.example.org/", "http://a.b.example.org/"], ["http://example.org/"]),
        ("example.org:8443", ["https://example.org:8443/", "http://example.org:8443"], ["https://example.org/"]),
        ("example.org:80", ["http://example.org/"], ["https://example.org/"]),
        ("https://example.org", ["https://example.org/"], ["http://example.org/", "https://example.org:444/"]),
        (
            "HTTP://*.example.org:81",
            ["http://a.example.org:81/"],
            ["http://a.example.org/", "https://a.example.org:81"],
        ),
        ("müller.example", ["http://xn--mller-kva.example/", "http://MÜLLER.example/"], ["http://muller.example/"]),
        ("[::1]", ["http://[::1]:1/"], ["http://[::2]/"]),
        ("127.0.0.1", ["http://127.0.0.1/"], ["http://127.1/", "http://2130706433/", "http://127.0.0.1.example.org/"]),
        ("org", ["http://org/"], ["http://example.org/"]),
        ("*.org", [], ["http://example.com/?.org", "http://example.com#.org", "http://a.org@example.com/"]),
    ],
)
def test_a_rule_allows_its_hosts_and_no_other(rule: str, allowed: list[str], refused: list[str]) -> None:
    def allows(url: str) -> bool:
        return HostRule.of(rule).allows(_requests.Target.of(url).origin)

    assert [allows(url) for url in allowed] == [True] * len(allowed)
    assert [allows(url) for url in refused] == [False] * len(refused)


@pytest.mark.parametrize(
    "rule",
    ["", "*", "*.", "a*.org", "ftp://a.org", "a.org/path", "a.org?b", "a.org#b", "u:p@a.org", "a b", "[x]", "a:b"],
)
def test_another_text_is_no_rule(rule: str) -> None:
    with pytest.raises(ValueError, match="allowed_hosts must be hosts such as"):
        HostRule.of(rule)


def refused(row: dict[str, object], text: str) -> None:
    error = row["error"]
    assert isinstance(error, dict)
    assert (row["status"], error["type"], error["attempts"]) == (None, "HostRefusedError", 1)
    assert text in error["message"]


def headers_of(pairs: list[tuple[str, str]]) -> pa.Array:
    return pa.array([pairs], pa.map_(pa.string(), pa.string()))


async def test_a_request_to_a_host_that_is_not_allowed_is_an_error_without_a_connection() -> None:
    async with serving(ok) as server:
        [row] = await get(server.url, allowed_hosts=["example.org", "*.example.com"])
        refused(row, f"requests to 127.0.0.1, port {server.port} (http) are not allowed")
        assert server.peers == []
        [row] = await get(server.url, allowed_hosts=[f"http://127.0.0.1:{server.port}"])
        assert row["status"] == 200


@pytest.mark.parametrize("name", ["Host", "hOsT"])
async def test_a_row_cannot_name_another_host_in_a_header(name: str) -> None:
    """The connection goes to the allowed host, and its server may send the request to the one in the header."""
    async with serving(ok) as server:
        row = await request("GET", server.url, {name: "inside.example"}, allowed_hosts=["127.0.0.1"])
        refused(row, "Host header")
        assert server.peers == []
        row = await request("GET", server.url, None, headers={name: "front.example"}, allowed_hosts=["127.0.0.1"])
        assert (row["status"], server.requests[0].headers["host"]) == (200, "front.example")
        assert (await request("GET", server.url, {name: "other.example"}))["status"] == 200


async def test_a_redirect_to_a_host_that_is_not_allowed_is_an_error_without_a_connection() -> None:
    async with (
        serving(ok) as inside,
        responding((302, {"location": f"http://127.0.0.1:{inside.port}/secret"})) as server,
    ):
        rule = f"127.0.0.1:{server.port}"
        refused((await get(server.url, allowed_hosts=[rule], follow_redirects=True))[0], "are not allowed")
        assert (len(server.requests), inside.peers) == (1, [])
        [row] = await get(server.url, allowed_hosts=[rule, f"127.0.0.1:{inside.port}"], follow_redirects=True)
        assert row["body"] == "/secret"


async def test_an_address_inside_the_network_is_refused_without_a_connection() -> None:
    async with serving(ok) as server:
        for host in ("127.0.0.1", "localhost", "127.1", "2130706433", "0x7f.0.0.1", "0.0.0.0", "[::ffff:127.0.0.1]"):
            [row] = await get(f"http://{host}:{server.port}/", only_public=True)
            refused(row, "not globally routable")
        assert server.peers == []


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_redirect_to_another_origin_carries_no_header_of_the_request(method: str) -> None:
    async def moved(peer: Peer) -> None:
        await peer.respond(b"", f"location: {target.url}/b", status="307 Moved")

    configured = {"x-api-key": "secret-1", "Authorization": "secret-2", "Cookie": "secret-3", "User-Agent": "secret-4"}
    async with serving(ok) as target, serving(moved) as server:
        conversion = work("http_request", headers=configured, follow_redirects=True)
        own = headers_of([("X-Token", "secret-5"), ("Accept", "secret-6"), ("Content-Type", "text/plain")])
        [row] = await results_of(conversion, [method], [f"http://u:secret-7@127.0.0.1:{server.port}/"], own, ["body"])
        assert (row["status"], row["body"]) == (200, "/b")
        assert "secret-1" in str(server.requests[0].headers)
        assert "secret-5" in str(server.requests[0].headers)
        [seen] = target.requests
        assert "secret" not in str(seen.headers)
        assert "authorization" not in seen.headers
        assert (seen.method, seen.body, seen.headers["content-type"]) == (method, b"body", "text/plain")
