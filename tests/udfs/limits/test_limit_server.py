"""The thread on the driver that grants tokens, over real connections: clients, strangers, and its end."""

from __future__ import annotations

import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, closing
from dataclasses import asdict, replace
from errno import EMFILE
from math import inf
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.support import PATIENCE, wait_until
from udfs import ClusterBudget
from udfs._limits import limit_server
from udfs._limits.budgets import BudgetGrant, BudgetRequest, BudgetSource, check_file, grant_from_file
from udfs._limits.cluster_limits import ServerAddress
from udfs._limits.limit_server import MAX_STRANGERS, MAX_UNNAMED, LimitServer
from udfs._limits.rates import HORIZON_SECONDS, TokenRequest, pace_of
from udfs._limits.signed_lines import SignedLines, UnsignedError
from udfs._limits.sources import DriverSource, GrantRefusedError

HOST = "127.0.0.1"
REQUEST = TokenRequest("weather", 1000, 5, lead=0.0)
BOOKS = ClusterBudget(10.0, name="books")


@pytest.fixture
def server() -> Iterator[LimitServer]:
    with made_server() as made:
        made.listen()
        yield made


def made_server(host: str = HOST) -> closing[LimitServer]:
    """A server that is closed at the end of the block."""
    return closing(LimitServer(host, lambda: False))


def source(server: LimitServer, **changed: Any) -> DriverSource:
    return DriverSource(ServerAddress(**{"host": HOST, "port": server.listen(), "secret": server.secret, **changed}))


@asynccontextmanager
async def opened(server: LimitServer, **changed: Any) -> Any:
    async with aclosing(source(server, **changed)) as client:
        await client.open()
        yield client


async def test_clients_of_one_name_get_different_tokens(server: LimitServer) -> None:
    async with opened(server) as one, opened(server) as other:
        first, second, named = [
            await each.grant(request)
            for each, request in ((one, REQUEST), (other, REQUEST), (other, TokenRequest("other", 10, 1, 0.0)))
        ]
    assert first.epoch == second.epoch == named.epoch
    assert second.start >= first.start + first.count / pace_of(1000)
    assert named.start <= named.now + HORIZON_SECONDS + 1 / pace_of(10)


async def test_a_client_without_the_secret_gets_nothing(server: LimitServer) -> None:
    with pytest.raises(UnsignedError, match="does not know the secret"):
        async with opened(server, secret="wrong"):
            pass


async def test_a_client_refuses_a_server_that_does_not_know_the_secret(server: LimitServer) -> None:
    """Another program listens at the address. It sees no request."""
    with made_server() as other, pytest.raises(UnsignedError):
        async with opened(server, port=other.listen()):
            pass


async def is_closed(stream: trio.SocketStream) -> bool:
    """Wait until the server has closed the connection."""
    with trio.fail_after(PATIENCE):
        try:
            while await stream.receive_some():
                pass
        except trio.BrokenResourceError:
            pass
    return True


@pytest.mark.parametrize(
    "sent",
    [
        b"\n",
        b"GET / HTTP/1.1\r\nHost: driver\r\n\r\n",
        b"x" * 100_000,
        b"0" * 64 + b"\n" + b'{"name": "weather", "rate": 1000, "count": 5, "lead": 0}\n',
        b"0" * 64 + b"\n" + b"0" * 64 + b' {"name": "weather", "rate": 1000, "count": 5, "lead": 0}\n',
    ],
    ids=["empty", "http", "endless", "unsigned", "signed badly"],
)
async def test_a_stranger_is_disconnected_and_does_not_disturb_clients(server: LimitServer, sent: bytes) -> None:
    async with opened(server) as client, await trio.open_tcp_stream(HOST, server.listen()) as stream:
        with trio.CancelScope() as scope:
            try:
                await stream.send_all(sent)
            except trio.BrokenResourceError:
                scope.cancel()  # the server did not read all of it
        assert await is_closed(stream)
        assert (await client.grant(REQUEST)).epoch


async def test_a_stranger_that_sends_slowly_is_disconnected_after_a_while(
    server: LimitServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limit_server, "LOGIN_SECONDS", 0.2)
    async with await trio.open_tcp_stream(HOST, server.listen()) as stream, trio.open_nursery() as nursery:

        async def drip() -> None:
            try:
                while True:
                    await stream.send_all(b"0")
                    await trio.sleep(0.02)
            except trio.BrokenResourceError:
                pass

        nursery.start_soon(drip)
        assert await is_closed(stream)
        nursery.cancel_scope.cancel()


async def test_many_silent_strangers_do_not_keep_a_client_out(
    server: LimitServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limit_server, "LOGIN_SECONDS", inf)
    async with AsyncExitStack() as stack:
        streams = [
            await stack.enter_async_context(await trio.open_tcp_stream(HOST, server.listen()))
            for _ in range(2 * MAX_STRANGERS)
        ]
        async with opened(server) as client:
            assert (await client.grant(REQUEST)).epoch
        for stream in streams[:MAX_STRANGERS]:
            assert await is_closed(stream)


async def test_the_number_of_clients_is_limited(server: LimitServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limit_server, "MAX_CLIENTS", 2)
    async with opened(server) as one, opened(server) as two:
        for each in (one, two):
            await each.grant(REQUEST)
        async with opened(server) as three:
            with pytest.raises(GrantRefusedError, match="connected to 2 worker processes") as caught:
                await three.grant(REQUEST)
            assert "Redis" in caught.value.advice
        assert (await one.grant(REQUEST)).epoch
    async with opened(server) as four:
        with trio.fail_after(PATIENCE):
            while True:
                try:
                    await four.grant(REQUEST)
                    break
                except GrantRefusedError:  # the server has not seen the two leave
                    await four.aclose()
                    await four.open()


async def test_a_client_that_is_silent_for_long_is_disconnected(
    server: LimitServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limit_server, "IDLE_SECONDS", 0.1)
    async with opened(server) as client:
        await client.grant(REQUEST)
        assert await is_closed(client._stream)


@pytest.mark.parametrize("message", [[], {"name": "weather"}, {**asdict(REQUEST), "count": "x"}])
async def test_a_client_that_sends_nonsense_is_disconnected(server: LimitServer, message: Any) -> None:
    async with opened(server) as client:
        await client.grant(REQUEST)
        lines: SignedLines = client._lines
        await lines.send(message)
        with trio.fail_after(PATIENCE), pytest.raises((ConnectionError, trio.BrokenResourceError)):
            await lines.receive()
    async with opened(server) as client:
        assert (await client.grant(REQUEST)).epoch


def test_a_server_listens_on_the_chosen_port_and_on_others_for_other_rates(server: LimitServer) -> None:
    first = server.listen()
    with socket.socket() as reserved:  # as long as it is bound, no other process gets its port
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind((HOST, 0))
        chosen = reserved.getsockname()[1]
        assert server.listen(chosen) == chosen
        assert server.listen(chosen) == chosen
        assert server.listen() in {first, chosen}


async def test_nothing_is_left_of_a_closed_server(server: LimitServer) -> None:
    thread = server._thread
    assert thread is not None
    async with opened(server) as client:
        await client.grant(REQUEST)
        await trio.to_thread.run_sync(server.close)
        with pytest.raises((ConnectionError, trio.BrokenResourceError)):
            await client.grant(REQUEST)
    assert not server.is_running
    assert not thread.is_alive()


async def test_a_thread_that_has_ended_is_replaced_and_grants_nothing_at_first(server: LimitServer) -> None:
    """Clients find it at the same address, with the same secret. It has forgotten what was granted."""
    port = server.listen()
    async with opened(server) as client:
        before = await client.grant(REQUEST)
    await trio.to_thread.run_sync(server.close)
    assert await trio.to_thread.run_sync(server.listen) == port
    async with opened(server) as client:
        after = await client.grant(TokenRequest("weather", 10, 5, lead=0.0))
    assert after.epoch != before.epoch
    assert after.start >= server._token_source._began + HORIZON_SECONDS + 1 / pace_of(10)


def test_a_server_ends_with_its_application() -> None:
    over = threading.Event()
    server = LimitServer(HOST, over.is_set)
    server.listen()
    over.set()
    wait_until(lambda: not server.is_running)
    server.close()


def test_an_address_that_is_not_of_this_machine_is_an_error() -> None:
    with made_server("192.0.2.1") as server, pytest.raises(OSError, match="Errno"):
        server.listen()


def test_a_thread_that_cannot_start_is_an_error_with_the_cause_and_the_next_attempt_works(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def too_many_files(*_: Any, **__: Any) -> None:
        raise OSError(EMFILE, "Too many open files")

    with made_server() as server:
        with monkeypatch.context() as patched:
            patched.setattr(trio, "run", too_many_files)
            with pytest.raises(RuntimeError, match=r"cannot start the thread that leases its limits .*Too many open"):
                server.listen()
        assert server.listen()


def budget_request(number: int, want: float, holder: str = "a") -> BudgetRequest:
    return BudgetRequest("books", 10.0, holder, number, 0.0, 0.0, want, want)


async def test_a_budget_is_leased_beside_rates(server: LimitServer) -> None:
    server.add(BOOKS)
    async with opened(server) as client:
        assert (await client.grant(budget_request(1, 7.0))).lease == 7.0
        assert (await client.grant(REQUEST)).epoch
        assert (await client.grant(budget_request(1, 4.0, "b"))).lease == 0.0


async def test_a_thread_that_takes_over_knows_the_budgets(server: LimitServer) -> None:
    server.add(BOOKS)
    async with opened(server) as client:
        await client.grant(budget_request(1, 7.0))
    await trio.to_thread.run_sync(server.close)
    async with opened(server) as client:
        assert (await client.grant(budget_request(1, 4.0, "b"))).lease == 0.0


async def test_a_budget_that_nobody_has_named_is_not_leased(server: LimitServer) -> None:
    async with opened(server) as client:
        with pytest.raises(GrantRefusedError, match="has forgotten the budget 'books'") as caught:
            await client.grant(budget_request(1, 7.0))
    assert "give the ClusterBudget a name" in caught.value.advice


async def test_a_file_that_cannot_be_used_any_more_is_the_reason_that_the_client_sees(
    server: LimitServer, tmp_path: Path
) -> None:
    path = tmp_path / "folder" / "budgets"
    path.parent.mkdir()
    server.add(ClusterBudget(10.0, name="books", path=path))
    async with opened(server) as client:
        assert (await client.grant(budget_request(1, 1.0))).lease == 1.0
        shutil.rmtree(path.parent)
        with pytest.raises(GrantRefusedError, match=f"the driver cannot use path='{path}'") as caught:
            await client.grant(budget_request(2, 7.0))
        assert "Check that this file and its folder exist and can be written" in caught.value.advice
        path.parent.mkdir()
        check_file(str(path))
        assert (await client.grant(budget_request(3, 7.0))).lease == 7.0


async def test_a_file_that_is_locked_delays_only_its_own_budgets(
    server: LimitServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another driver has locked it."""
    is_waiting, is_free = threading.Event(), threading.Event()

    def grant(source: BudgetSource, path: str, now: float, request: BudgetRequest) -> BudgetGrant:
        if request.name == "locked":
            is_waiting.set()
            assert is_free.wait(PATIENCE)
        return grant_from_file(source, path, now, request)

    monkeypatch.setattr(limit_server, "grant_from_file", grant)
    for name in ("locked", "other"):
        server.add(ClusterBudget(10.0, name=name, path=tmp_path / name))
    server.add(BOOKS)
    try:
        async with opened(server) as first, opened(server) as second, trio.open_nursery() as nursery:
            nursery.start_soon(first.grant, replace(budget_request(1, 1.0), name="locked"))
            await trio.to_thread.run_sync(is_waiting.wait, PATIENCE)
            with trio.fail_after(PATIENCE):
                for name in ("books", "other"):
                    assert (await second.grant(replace(budget_request(1, 1.0), name=name))).lease == 1.0
            is_free.set()
    finally:
        is_free.set()


def test_budgets_of_queries_that_are_gone_are_forgotten(server: LimitServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each micro-batch builds one. Those that a user holds, and named ones, are kept."""
    monkeypatch.setattr(limit_server, "FORGOTTEN_SECONDS", -1.0)  # the time has always passed
    held = ClusterBudget(10.0)
    for budget in (held, BOOKS, ClusterBudget(10.0, name="maps")):
        server.add(budget)
    for _ in range(MAX_UNNAMED + 50):
        server.add(ClusterBudget(10.0))
    assert len(server._budgets) <= MAX_UNNAMED + 3
    assert {held.name, "books", "maps"} <= set(server._budgets)


def test_a_budget_that_is_used_is_not_forgotten(server: LimitServer) -> None:
    for _ in range(MAX_UNNAMED + 50):
        server.add(ClusterBudget(10.0))
    assert len(server._budgets) == MAX_UNNAMED + 50
