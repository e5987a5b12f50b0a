"""Connection, on virtual time and with streams in memory."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
import trio
from trio.testing import MockClock, memory_stream_pair

from udfs.http._connection import Connection
from udfs.http._pool import ConnectionPool
from udfs.http._request import RequestWriter
from udfs.http._tls import SslContext
from udfs.http._url import Origin

HERE = Origin(b"http", b"here", 80)


@dataclass(eq=False)
class Pipe:
    """Both ends of a connection in memory, in place of a `Dialler` and of its stream."""

    origin: Origin = HERE
    ends: Any = field(default_factory=memory_stream_pair)
    closed_at: float | None = None

    @property
    def is_open(self) -> bool:
        return self.closed_at is None

    def is_silent(self) -> bool:
        return self.is_open

    async def connect(self, _: float | None) -> Pipe:
        return self

    def send_now(self, _: bytes) -> bool:
        return True

    async def receive_some(self) -> bytes:
        return bytes(await self.ends[0].receive_some())

    def close(self) -> None:
        self.closed_at = trio.current_time()
        self.ends[0].send_stream.close()
        self.ends[0].receive_stream.close()

    async def drip(self, *parts: bytes, pause: float) -> None:
        for part in parts:
            await trio.sleep(pause)
            await self.ends[1].send_all(part)


@dataclass(eq=False)
class Broken(Pipe):
    """A connection that is reset after these bytes."""

    start: bytes = b""

    async def receive_some(self) -> bytes:
        await trio.lowlevel.checkpoint()
        data, self.start = self.start, b""
        if not data:
            raise trio.BrokenResourceError("Connection reset by peer")
        return data


def connection(pipe: Any) -> Connection:
    return Connection(pipe)


def request(read: float | None) -> RequestWriter:
    return RequestWriter.of(httpx.Request("GET", "http://127.0.0.1/", extensions={"timeout": {"read": read}}))


async def send_and_read(used: Connection, seconds: float | None) -> bytes:
    await used.send(request(seconds))
    return await used.read(seconds)


HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n"


async def test_a_read_timeout_applies_to_each_read(autojump_clock: MockClock) -> None:
    pipe, start = Pipe(), trio.current_time()
    used = connection(pipe)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: pipe.drip(HEAD[:9], HEAD[9:], b"wa", b"r", pause=2.0))
        await used.send(request(3.0))
        assert [await used.read(3.0), await used.read(3.0)] == [b"wa", b"r"]
        assert trio.current_time() == start + 8
        with pytest.raises(httpx.ReadTimeout, match=r"read timeout of 3\.0 s"):
            await used.read(3.0)
        assert trio.current_time() == start + 11


PHASES = {
    b"": "before the response",
    b"HTTP/1.1 200 OK": "in the head of the response",
    HEAD: "in the body of the response",
}


@pytest.mark.parametrize("start", PHASES)
async def test_a_read_timeout_names_the_host_and_the_phase(start: bytes, autojump_clock: MockClock) -> None:
    pipe = Pipe()
    used = connection(pipe)
    await pipe.ends[1].send_all(start)
    with pytest.raises(httpx.ReadTimeout) as caught:
        await send_and_read(used, 3.0)
    assert str(caught.value) == f"read timeout of 3.0 s (here:80, {PHASES[start]})"


@pytest.mark.parametrize("start", PHASES)
async def test_a_broken_connection_names_the_host_and_the_phase(start: bytes) -> None:
    used = connection(Broken(start=start))
    with pytest.raises(httpx.ReadError) as caught:
        await send_and_read(used, None)
    assert str(caught.value) == f"Connection reset by peer (here:80, {PHASES[start]})"


@pytest.mark.parametrize("seconds", [0.0, -1.0, math.nan])
async def test_a_read_timeout_that_is_not_positive_expires_immediately(
    seconds: float, autojump_clock: MockClock
) -> None:
    start = trio.current_time()
    with pytest.raises(httpx.ReadTimeout):
        await connection(Pipe()).send(request(seconds))
    assert trio.current_time() == start


# Idle connections in a pool


class Pool(ConnectionPool):
    """Its connections are pipes."""

    def __init__(self, keepalive_expiry: float = 5.0) -> None:
        ssl_context = SslContext(verify=False, cert=None, trust_env=False)
        super().__init__(ssl_context, 100, keepalive_expiry, only_public=False)
        self.pipes: list[Pipe] = []
        self._dialler = self._pipe  # type: ignore[assignment]

    def _pipe(self, origin: Origin, _: object) -> Any:
        self.pipes.append(Pipe(origin))
        return self.pipes[-1]

    async def use(self, origin: Origin = HERE) -> Connection:
        """A connection to release, after one request and its response."""
        used = self._take(origin)
        pipe: Any = used._dialler
        await pipe.ends[1].send_all(HEAD + b"warm")
        await used.send(request(None))
        assert await used.read(None) == b"warm"
        return used


async def test_an_idle_connection_is_closed_when_it_expires(autojump_clock: MockClock) -> None:
    pool, start = Pool(), trio.current_time()
    pool.release(await pool.use())
    await trio.sleep(1)
    pool.release(await pool.use(Origin(b"http", b"there", 80)))
    await trio.sleep(9)
    assert [pipe.closed_at for pipe in pool.pipes] == [start + 5, start + 6]
    pool.release(await pool.use())
    assert (len(pool.pipes), pool.pipes[-1].is_open) == (3, True)


async def test_a_reused_connection_expires_after_its_last_use(autojump_clock: MockClock) -> None:
    pool, start = Pool(), trio.current_time()
    pool.release(await pool.use())
    await trio.sleep(4)
    used = await pool.use()
    await trio.sleep(9)
    assert pool.pipes[0].is_open
    pool.release(used)
    await trio.sleep(9)
    assert [pipe.closed_at for pipe in pool.pipes] == [start + 18]


async def test_a_connection_without_an_expiry_stays_open_and_needs_no_task(autojump_clock: MockClock) -> None:
    pool = Pool(math.inf)
    before = trio.lowlevel.current_statistics().tasks_living
    pool.release(await pool.use())
    await trio.sleep(10_000)
    assert pool.pipes[0].is_open
    assert trio.lowlevel.current_statistics().tasks_living == before


async def test_without_idle_time_a_connection_is_closed_after_its_response(autojump_clock: MockClock) -> None:
    pool, start = Pool(0.0), trio.current_time()
    pool.release(await pool.use())
    assert pool.pipes[0].closed_at == start


@pytest.mark.parametrize("how", ["close", "expiry"])
async def test_the_task_ends_when_no_connection_is_idle(how: str, autojump_clock: MockClock) -> None:
    pool, before = Pool(), trio.lowlevel.current_statistics().tasks_living
    pool.release(await pool.use())
    await trio.testing.wait_all_tasks_blocked()
    assert trio.lowlevel.current_statistics().tasks_living == before + 1
    if how == "close":
        pool.close()
        await trio.testing.wait_all_tasks_blocked()
    else:
        await trio.sleep(6)
    assert trio.lowlevel.current_statistics().tasks_living == before


def test_the_end_of_a_run_closes_the_idle_connections() -> None:
    pool = Pool()

    async def run() -> None:
        pool.release(await pool.use())

    for number in (1, 2):
        trio.run(run)
        assert len(pool.pipes) == number
        assert not any(pipe.is_open for pipe in pool.pipes)
