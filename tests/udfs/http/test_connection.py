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
from udfs.http._deadlines import Deadlines
from udfs.http._request import RequestWriter


@dataclass
class Pipe:
    """Both ends of a connection in memory, in place of a `Dialler` and of its stream."""

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


def connection(pipe: Any, deadlines: Deadlines) -> Connection:
    return Connection(pipe, 5.0, deadlines)


def request(read: float | None) -> RequestWriter:
    return RequestWriter.of(httpx.Request("GET", "http://127.0.0.1/", extensions={"timeout": {"read": read}}))


HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n"


async def test_a_read_timeout_applies_to_each_read(autojump_clock: MockClock) -> None:
    pipe, start = Pipe(), trio.current_time()
    used = connection(pipe, Deadlines())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: pipe.drip(HEAD[:9], HEAD[9:], b"wa", b"r", pause=2.0))
        await used.send(request(3.0))
        assert [await used.read(3.0), await used.read(3.0)] == [b"wa", b"r"]
        assert trio.current_time() == start + 8
        with pytest.raises(httpx.ReadTimeout, match=r"read timeout of 3\.0 s"):
            await used.read(3.0)
        assert trio.current_time() == start + 11


async def test_a_timeout_of_one_connection_does_not_affect_another(autojump_clock: MockClock) -> None:
    pipes, deadlines, start = [Pipe(), Pipe()], Deadlines(), trio.current_time()
    slow, quick = (connection(pipe, deadlines) for pipe in pipes)
    ended: dict[str, float] = {}

    async def wait(name: str, waiting: Connection, seconds: float) -> None:
        with pytest.raises(httpx.ReadTimeout):
            await waiting.send(request(seconds))
        ended[name] = trio.current_time() - start

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait, "slow", slow, 5.0)
        await trio.sleep(1)
        nursery.start_soon(wait, "quick", quick, 2.0)
    assert ended == {"slow": 5, "quick": 3}


async def test_a_cancelled_request_leaves_no_deadline_behind(autojump_clock: MockClock) -> None:
    pipe, deadlines = Pipe(), Deadlines()
    used = connection(pipe, deadlines)
    with trio.move_on_after(1):
        await used.send(request(3.0))
    await trio.sleep(9)
    await pipe.ends[0].send_all(b"open")  # fails if a deadline has closed the stream


async def test_without_a_read_timeout_a_request_waits(autojump_clock: MockClock) -> None:
    pipe, start = Pipe(), trio.current_time()
    used = connection(pipe, Deadlines())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: pipe.drip(HEAD, pause=10_000.0))
        await used.send(request(None))
    assert trio.current_time() == start + 10_000


async def served(pipe: Pipe, deadlines: Deadlines) -> Connection:
    """A connection after one request and its response."""
    used = connection(pipe, deadlines)
    await pipe.ends[1].send_all(HEAD + b"warm")
    await used.send(request(5.0))
    assert await used.read(5.0) == b"warm"
    assert used.is_reusable()
    return used


async def test_an_idle_connection_is_closed_when_it_expires(autojump_clock: MockClock) -> None:
    pipe, deadlines, start = Pipe(), Deadlines(), trio.current_time()
    used = await served(pipe, deadlines)
    used.begin_idle()
    await trio.sleep(9)
    assert pipe.closed_at == start + 5
    assert not used.end_idle()


async def test_a_reused_connection_does_not_expire(autojump_clock: MockClock) -> None:
    pipe, deadlines = Pipe(), Deadlines()
    used = await served(pipe, deadlines)
    used.begin_idle()
    await trio.sleep(4)
    assert used.end_idle()
    await trio.sleep(9)
    assert pipe.is_open


async def test_a_connection_without_an_expiry_stays_open(autojump_clock: MockClock) -> None:
    pipe, deadlines = Pipe(), Deadlines()
    used = Connection(pipe, math.inf, deadlines)  # type: ignore[arg-type]
    await pipe.ends[1].send_all(HEAD + b"warm")
    await used.send(request(None))
    before = trio.lowlevel.current_statistics().tasks_living
    used.begin_idle()
    await trio.sleep(10_000)
    assert used.end_idle()
    assert trio.lowlevel.current_statistics().tasks_living == before


async def test_closing_an_idle_connection_clears_its_deadline(autojump_clock: MockClock) -> None:
    pipe, deadlines, start = Pipe(), Deadlines(), trio.current_time()
    used = await served(pipe, deadlines)
    used.begin_idle()
    used.close_idle()
    await trio.sleep(9)
    assert pipe.closed_at == start
