"""Hang-up detection: reports that the peer has closed the connection."""

from __future__ import annotations

import socket
import sys
from typing import Any

import pytest
import trio
from trio.testing import MockClock

import udfs._trio_thread.hang_up
from udfs._trio_thread.hang_up import until_hangup


@pytest.fixture(params=["linux", "darwin"], autouse=True)
def _platform(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With epoll, as on Linux, and with polling, as elsewhere."""
    monkeypatch.setattr(sys, "platform", request.param)


async def heard(ours: socket.socket, seconds: float) -> bool:
    """Whether the hang-up is reported within this many virtual seconds."""
    with trio.move_on_after(seconds):
        await until_hangup(ours)
        return True
    return False


async def test_an_open_connection_is_not_reported(pair: Any, autojump_clock: MockClock) -> None:
    assert not await heard(pair[0], 60.0)


async def test_unread_data_are_not_a_hang_up(pair: Any, autojump_clock: MockClock) -> None:
    """Spark writes rows ahead of the thread that reads them."""
    ours, sparks = pair
    sparks.send(b"rows")
    assert not await heard(ours, 60.0)


@pytest.mark.parametrize("unread", [b"", b"rows"])
async def test_a_hang_up_is_reported_with_and_without_unread_data(
    pair: Any, unread: bytes, autojump_clock: MockClock
) -> None:
    ours, sparks = pair
    sparks.send(unread)
    sparks.close()
    assert await heard(ours, udfs._trio_thread.hang_up.POLL_SECONDS)


async def test_a_half_closed_connection_is_reported(pair: Any, autojump_clock: MockClock) -> None:
    ours, sparks = pair
    sparks.shutdown(socket.SHUT_WR)
    assert await heard(ours, udfs._trio_thread.hang_up.POLL_SECONDS)


async def test_a_hang_up_is_reported_at_once_or_at_the_next_poll(pair: Any, autojump_clock: MockClock) -> None:
    ours, sparks = pair
    async with trio.open_nursery() as nursery:

        @nursery.start_soon
        async def hang_up() -> None:
            await trio.sleep(1.05)
            sparks.close()

        await until_hangup(ours)
        assert trio.current_time() == pytest.approx(1.05 if sys.platform == "linux" else 1.1)
