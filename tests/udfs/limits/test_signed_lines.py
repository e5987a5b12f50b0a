"""Signed lines: what each end accepts, over streams in memory."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock, memory_stream_pair

from udfs._limits.signed_lines import HEX_DIGITS, MAX_BYTES, SignedLines, UnsignedError

SECRET = "a secret"


class Wire:
    """A client and a server, with somebody between them who reads every line and can send others instead.

    Attributes:
        client, server: The ends, whose lines arrive only when they are passed on.
        to_server, to_client: What the ends have sent, as streams to read from.
    """

    def __init__(self, client: str = SECRET, server: str = SECRET) -> None:
        near_client, self.to_server = memory_stream_pair()
        near_server, self.to_client = memory_stream_pair()
        self.client = SignedLines(near_client, client)
        self.server = SignedLines(near_server, server)

    async def line_of_client(self) -> bytes:
        return await line_of(self.to_server)

    async def line_of_server(self) -> bytes:
        return await line_of(self.to_client)

    async def send_to_client(self, data: bytes) -> None:
        await self.to_server.send_all(data)

    async def send_to_server(self, data: bytes) -> None:
        await self.to_client.send_all(data)

    async def open(self) -> None:
        """Pass the lines on until both ends are ready."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.client.connect)
            nursery.start_soon(self.server.accept)
            await self.send_to_server(await self.line_of_client())
            await self.send_to_client(await self.line_of_server())
            await self.send_to_client(await self.line_of_server())


async def line_of(stream: Any) -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        line += await stream.receive_some(1)
    return line


@pytest.fixture
async def wire() -> Wire:
    made = Wire()
    await made.open()
    return made


async def test_values_arrive_in_both_directions(wire: Wire) -> None:
    await wire.client.send({"count": 7})
    await wire.send_to_server(await wire.line_of_client())
    assert await wire.server.receive() == {"count": 7}
    await wire.server.send([1.5, "text"])
    await wire.send_to_client(await wire.line_of_server())
    assert await wire.client.receive() == [1.5, "text"]


async def test_a_client_refuses_a_server_without_the_secret() -> None:
    wire = Wire(server="another secret")
    with pytest.RaisesGroup(pytest.RaisesExc(UnsignedError, match="does not know the secret")):
        await wire.open()


async def test_a_server_refuses_a_client_without_the_secret() -> None:
    """It goes on although the server did not prove anything to it."""
    wire = Wire(client="another secret")
    number = "0" * HEX_DIGITS
    await wire.send_to_server(number.encode() + b"\n")
    await wire.server.accept()
    own, other = wire.client._keys(number.encode(), (await wire.line_of_server()).strip())
    wire.client._own_key, wire.client._other_key = own, other
    await wire.client.send({"count": 1})
    await wire.send_to_server(await wire.line_of_client())
    with pytest.raises(UnsignedError, match="does not know the secret"):
        await wire.server.receive()


async def test_an_echo_is_no_proof(autojump_clock: MockClock) -> None:
    """Whoever sends back what the client has sent has no line that the client accepts."""
    wire = Wire()

    async def echo() -> None:
        while True:
            await wire.send_to_client(await wire.line_of_client())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(echo)
        with pytest.raises(trio.TooSlowError), trio.fail_after(60.0):
            await wire.client.connect()
        nursery.cancel_scope.cancel()


async def test_a_line_of_the_other_direction_is_refused(wire: Wire) -> None:
    """It has the position that the next line of this direction must have."""
    for _ in range(2):
        await wire.client.send("text")
    await wire.line_of_client()
    await wire.send_to_client(await wire.line_of_client())
    with pytest.raises(UnsignedError):
        await wire.client.receive()


async def test_the_recorded_lines_of_an_earlier_connection_are_refused(wire: Wire) -> None:
    first, second = Wire(), Wire()
    number = b"7" * HEX_DIGITS + b"\n"
    for each in (first, second):
        await each.send_to_server(number)
        await each.server.accept()
    answered = [(await each.line_of_server()).strip() for each in (first, second)]
    assert answered[0] != answered[1]
    recorded = SignedLines(memory_stream_pair()[0], SECRET)
    recorded._own_key, _ = recorded._keys(number.strip(), answered[0])
    recorded._stream = first.to_client
    await recorded.send("text")
    assert await first.server.receive() == "text"
    recorded._stream, recorded._sent_lines = second.to_client, 0
    await recorded.send("text")
    with pytest.raises(UnsignedError):
        await second.server.receive()


@pytest.mark.parametrize("places", [[0, 0], [1, 0], [1, 2]], ids=["repeated", "reordered", "left out"])
async def test_lines_must_arrive_as_they_were_sent(wire: Wire, places: list[int]) -> None:
    for value in range(3):
        await wire.client.send(value)
    lines = [await wire.line_of_client() for _ in range(3)]
    for place in places:
        await wire.send_to_server(lines[place])
    with pytest.raises(UnsignedError):
        assert [await wire.server.receive() for _ in range(2)] == [0, 1]


@given(data=st.data())
def test_a_line_with_any_changed_bit_is_refused(data: st.DataObject) -> None:
    async def check() -> None:
        wire = Wire()
        await wire.open()
        await wire.client.send({"count": 7})
        line = bytearray(await wire.line_of_client())
        position = data.draw(st.integers(0, len(line) - 2), "position")
        line[position] ^= 1 << data.draw(st.integers(0, 7), "bit")
        await wire.send_to_server(bytes(line))
        with pytest.raises(UnsignedError):
            await wire.server.receive()

    trio.run(check)


async def test_a_line_that_is_cut_off_is_an_error(wire: Wire) -> None:
    await wire.client.send("text")
    await wire.send_to_server((await wire.line_of_client())[:-1])
    await wire.to_client.send_eof()
    with pytest.raises(ConnectionError, match="has closed the connection"):
        await wire.server.receive()


@pytest.mark.parametrize("begin", [SignedLines.connect, SignedLines.accept])
async def test_a_line_without_an_end_is_refused(begin: Callable[[SignedLines], Awaitable[None]]) -> None:
    near, far = memory_stream_pair()
    await far.send_all(b"x" * 10 * MAX_BYTES)
    with pytest.raises(ConnectionError, match="a line has more than 4096 bytes"):
        await begin(SignedLines(near, SECRET))


@pytest.mark.parametrize(
    "sent", [b"\n", b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01 \n", b"0" * (HEX_DIGITS + 1) + b"\n"]
)
@pytest.mark.parametrize("begin", [SignedLines.connect, SignedLines.accept])
async def test_garbage_is_refused(begin: Callable[[SignedLines], Awaitable[None]], sent: bytes) -> None:
    near, far = memory_stream_pair()
    await far.send_all(sent)
    with pytest.raises(UnsignedError, match="is not a source of tokens"):
        await begin(SignedLines(near, SECRET))
