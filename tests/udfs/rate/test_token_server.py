"""The thread on the driver that grants tokens, and its client."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import trio

from tests.support import PATIENCE, wait_until
from udfs._rate.driver_tokens import DriverTokens
from udfs._rate.lease import Request
from udfs._rate.lines import Lines
from udfs._rate.token_server import TokenServer

ASK = Request(5, lead=0.0, is_back=False)


@pytest.fixture
def server() -> Iterator[TokenServer]:
    made = TokenServer("127.0.0.1", lambda: False)
    made.add("weather", 1000, 1.0)
    yield made
    made.close()


def client(server: TokenServer, name: str = "weather", **changed: Any) -> DriverTokens:
    return DriverTokens(**{"host": "127.0.0.1", "port": server.port, "secret": server.secret, "name": name, **changed})


async def test_clients_of_one_name_get_different_tokens(server: TokenServer) -> None:
    first, second = client(server), client(server)
    one, other = await first.ask(ASK), await second.ask(ASK)
    assert one.grant.count == other.grant.count == 5
    assert other.grant.start >= one.grant.start + 5 / 1000
    assert one.sent <= one.received
    await first.aclose()
    await second.aclose()


async def test_names_have_limits_of_their_own(server: TokenServer) -> None:
    server.add("other", 10, 1.0)
    busy, idle = client(server), client(server, "other")
    for _ in range(20):
        last = await busy.ask(Request(1000, lead=0.0, is_back=False))
    assert last.grant.count < 1000
    assert (await idle.ask(ASK)).grant.count > 0
    await busy.aclose()
    await idle.aclose()


async def test_a_client_uses_one_connection_and_opens_another_after_a_failure(server: TokenServer) -> None:
    tokens = client(server)
    with trio.move_on_after(0):
        await tokens.ask(ASK)
    for _ in range(3):
        assert (await tokens.ask(ASK)).grant.count == 5
    await tokens.aclose()


async def test_a_client_without_the_secret_gets_nothing(server: TokenServer) -> None:
    tokens = client(server, secret="wrong")
    with pytest.raises((ConnectionError, trio.BrokenResourceError)):  # the second if the server left bytes unread
        await tokens.ask(ASK)


@pytest.mark.parametrize("sent", [b"\n", b"[1]\n", b"x" * 10_000, b'{"name": "weather"}\n'])
async def test_a_stranger_does_not_disturb_the_server(server: TokenServer, sent: bytes) -> None:
    async with await trio.open_tcp_stream("127.0.0.1", server.port) as stream:
        await stream.send_all(sent)
        with trio.fail_after(PATIENCE):
            try:
                while await stream.receive_some():
                    pass
            except trio.BrokenResourceError:
                pass
    tokens = client(server)
    assert (await tokens.ask(ASK)).grant.count == 5
    await tokens.aclose()


@pytest.mark.parametrize("message", [[], {"name": "unknown", "count": 1, "is_back": False}, {"count": "x"}])
async def test_a_client_that_asks_for_nonsense_is_disconnected(server: TokenServer, message: Any) -> None:
    tokens = client(server)
    await tokens.ask(ASK)
    lines: Lines | None = tokens._lines
    assert lines is not None
    await lines.send(message)
    with trio.fail_after(PATIENCE), pytest.raises(OSError, match="closed the connection"):
        await lines.receive()
    await tokens.aclose()


def test_one_name_has_one_rate(server: TokenServer) -> None:
    server.add("weather", 1000, 1.0)
    with pytest.raises(ValueError, match="named 'weather' is 1000 calls per second in this session, got 500"):
        server.add("weather", 500, 1.0)


async def test_nothing_is_left_of_a_closed_server(server: TokenServer) -> None:
    tokens = client(server)
    await tokens.ask(ASK)
    await trio.to_thread.run_sync(server.close)
    with pytest.raises((ConnectionError, trio.BrokenResourceError)):
        await tokens.ask(ASK)
    assert not server.is_running
    assert "udfs-cluster-rate" not in {thread.name for thread in threading.enumerate()}


def test_a_server_ends_with_its_application() -> None:
    over = threading.Event()
    server = TokenServer("127.0.0.1", over.is_set)
    over.set()
    wait_until(lambda: not server.is_running)
    server.close()


def test_an_address_that_is_not_of_this_machine_is_an_error() -> None:
    with pytest.raises(OSError, match="Errno"):
        TokenServer("192.0.2.1", lambda: False)
