"""The connection, on virtual time and with streams in memory."""

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
from udfs.http._request_writer import RequestWriter


@dataclass
class Line:
    """Both ends of a connection, in memory; in the place of a `Dialler`, and of its stream."""

    ends: Any = field(default_factory=memory_stream_pair)
    closed_at: float | None = None

    @property
    def is_open(self) -> bool:
        return self.closed_at is None

    def is_silent(self) -> bool:
        return self.is_open

    async def connect(self, _: float | None) -> Line:
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


def connection(line: Any, deadlines: Deadlines) -> Connection:
    return Connection(line, 5.0, deadlines)


def request(read: float | None) -> RequestWriter:
    return RequestWriter(httpx.Request("GET", "http://127.0.0.1/", extensions={"timeout": {"read": read}}))


HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n"


async def test_a_read_timeout_is_of_each_read(autojump_clock: MockClock) -> None:
    line, start = Line(), trio.current_time()
    asked = connection(line, Deadlines())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: line.drip(HEAD[:9], HEAD[9:], b"wa", b"r", pause=2.0))
        await asked.send(request(3.0))
        assert [await asked.read(3.0), await asked.read(3.0)] == [b"wa", b"r"]
        assert trio.current_time() == start + 8
        with pytest.raises(httpx.ReadTimeout, match=r"read timeout of 3\.0 s"):
            await asked.read(3.0)
        assert trio.current_time() == start + 11


async def test_a_timeout_of_one_is_none_of_another(autojump_clock: MockClock) -> None:
    lines, deadlines, start = [Line(), Line()], Deadlines(), trio.current_time()
    slow, quick = (connection(line, deadlines) for line in lines)
    ended: dict[str, float] = {}

    async def wait(name: str, asked: Connection, seconds: float) -> None:
        with pytest.raises(httpx.ReadTimeout):
            await asked.send(request(seconds))
        ended[name] = trio.current_time() - start

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait, "slow", slow, 5.0)
        await trio.sleep(1)
        nursery.start_soon(wait, "quick", quick, 2.0)
    assert ended == {"slow": 5, "quick": 3}


async def test_whoever_is_cancelled_leaves_no_deadline_behind(autojump_clock: MockClock) -> None:
    line, deadlines = Line(), Deadlines()
    asked = connection(line, deadlines)
    with trio.move_on_after(1):
        await asked.send(request(3.0))
    await trio.sleep(9)
    await line.ends[0].send_all(b"open")  # the stream is whoever's it is now


async def test_without_a_read_timeout_it_waits(autojump_clock: MockClock) -> None:
    line, start = Line(), trio.current_time()
    asked = connection(line, Deadlines())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: line.drip(HEAD, pause=10_000.0))
        await asked.send(request(None))
    assert trio.current_time() == start + 10_000


async def served(line: Line, deadlines: Deadlines) -> Connection:
    """A connection that has had a request and its response."""
    asked = connection(line, deadlines)
    await line.ends[1].send_all(HEAD + b"warm")
    await asked.send(request(5.0))
    assert await asked.read(5.0) == b"warm"
    assert asked.is_reusable()
    return asked


async def test_an_idle_connection_is_closed_when_it_expires_although_nobody_asks(autojump_clock: MockClock) -> None:
    line, deadlines, start = Line(), Deadlines(), trio.current_time()
    asked = await served(line, deadlines)
    asked.begin_idle()
    await trio.sleep(9)
    assert line.closed_at == start + 5
    assert not asked.end_idle()


async def test_a_connection_that_is_used_again_does_not_expire(autojump_clock: MockClock) -> None:
    line, deadlines = Line(), Deadlines()
    asked = await served(line, deadlines)
    asked.begin_idle()
    await trio.sleep(4)
    assert asked.end_idle()
    await trio.sleep(9)
    assert line.is_open


async def test_a_connection_without_an_expiry_stays_open(autojump_clock: MockClock) -> None:
    line, deadlines = Line(), Deadlines()
    asked = Connection(line, math.inf, deadlines)  # type: ignore[arg-type]
    await line.ends[1].send_all(HEAD + b"warm")
    await asked.send(request(None))
    before = trio.lowlevel.current_statistics().tasks_living
    asked.begin_idle()
    await trio.sleep(10_000)
    assert asked.end_idle()
    assert trio.lowlevel.current_statistics().tasks_living == before


async def test_a_connection_that_is_discarded_leaves_no_deadline_behind(autojump_clock: MockClock) -> None:
    line, deadlines = Line(), Deadlines()
    asked = await served(line, deadlines)
    asked.begin_idle()
    asked.close_idle()
    assert not line.is_open
    assert deadlines._queues == {}
