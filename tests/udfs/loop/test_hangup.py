"""The hang-up: this end of the connection learns that the other end has closed it."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import trio
from trio.testing import MockClock

import udfs._loop.hangup
from udfs._loop.hangup import until_hangup


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """This worker's end, and Spark's."""
    ours, sparks = socket.socketpair()
    with ours, sparks:
        yield ours, sparks


@pytest.fixture(params=["linux", "darwin"], autouse=True)
def _platform(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Linux reports a hang-up by itself; elsewhere the socket is polled."""
    monkeypatch.setattr(sys, "platform", request.param)


async def heard(ours: socket.socket, seconds: float) -> bool:
    """Whether the hang-up is heard within so many virtual seconds."""
    with trio.move_on_after(seconds):
        await until_hangup(ours)
        return True
    return False


async def test_a_connection_that_is_open_is_not_heard_to_hang_up(pair: Any, autojump_clock: MockClock) -> None:
    assert not await heard(pair[0], 60.0)


async def test_data_that_waits_to_be_read_is_no_hang_up(pair: Any, autojump_clock: MockClock) -> None:
    """Spark writes ahead, and its thread reads when it wants to."""
    ours, sparks = pair
    sparks.send(b"rows")
    assert not await heard(ours, 60.0)


@pytest.mark.parametrize("unread", [b"", b"rows"])
async def test_the_end_of_the_connection_is_heard_whether_or_not_data_waits(
    pair: Any, unread: bytes, autojump_clock: MockClock
) -> None:
    ours, sparks = pair
    sparks.send(unread)
    sparks.close()
    assert await heard(ours, udfs._loop.hangup.POLL_SECONDS)


async def test_it_is_heard_even_if_only_sparks_sending_half_has_closed(pair: Any, autojump_clock: MockClock) -> None:
    ours, sparks = pair
    sparks.shutdown(socket.SHUT_WR)
    assert await heard(ours, udfs._loop.hangup.POLL_SECONDS)


async def test_a_hang_up_while_one_waits_is_heard_at_once_or_at_the_next_look(
    pair: Any, autojump_clock: MockClock
) -> None:
    ours, sparks = pair
    async with trio.open_nursery() as nursery:

        @nursery.start_soon
        async def hang_up() -> None:
            await trio.sleep(1.05)
            sparks.close()

        await until_hangup(ours)
        assert trio.current_time() == pytest.approx(1.05 if sys.platform == "linux" else 1.1)
