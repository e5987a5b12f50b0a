"""The hang-up: the socket is found where PySpark keeps it, and its other end is heard to go."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from typing import Any

import pytest
import trio
from trio.testing import MockClock

import udfs._hangup
from udfs._hangup import until_hangup, worker_socket

WORKER = "def worker(sock, look):\n    return look()\n"


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """This worker's end, and Spark's."""
    ours, sparks = socket.socketpair()
    with ours, sparks:
        yield ours, sparks


def called_by_module(name: str, spec: str | None, local: Any) -> Any:
    """What `worker_socket` finds when a function of this module, with a local variable `sock`, has called it."""
    module: dict[str, Any] = {"__name__": name, "__spec__": spec and ModuleSpec(spec, None)}
    exec(WORKER, module)
    return module["worker"](local, worker_socket)


@pytest.mark.parametrize("name", ["__main__", "pyspark.daemon"])
def test_the_socket_is_found_in_pysparks_daemon(pair: Any, name: str) -> None:
    """Which is started as `python -m pyspark.daemon`, or called by a daemon module of the user's own."""
    assert called_by_module(name, "pyspark.daemon", pair[0]) is pair[0]


@pytest.mark.parametrize(
    ("name", "spec"), [("__main__", None), ("__main__", "their.job"), ("their.daemon", "their.daemon")]
)
def test_the_sockets_of_other_modules_are_none_of_our_business(pair: Any, name: str, spec: str | None) -> None:
    assert called_by_module(name, spec, pair[0]) is None


def test_a_local_of_that_name_that_is_no_socket_is_not_taken() -> None:
    assert called_by_module("__main__", "pyspark.daemon", "a socket") is None


def test_where_there_is_no_daemon_there_is_no_socket() -> None:
    assert worker_socket() is None


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
    assert await heard(ours, udfs._hangup.POLL_SECONDS)


async def test_it_is_heard_even_if_only_sparks_sending_half_has_closed(pair: Any, autojump_clock: MockClock) -> None:
    ours, sparks = pair
    sparks.shutdown(socket.SHUT_WR)
    assert await heard(ours, udfs._hangup.POLL_SECONDS)


async def test_a_hang_up_in_between_is_heard_at_the_next_look(pair: Any, autojump_clock: MockClock) -> None:
    ours, sparks = pair
    async with trio.open_nursery() as nursery:

        @nursery.start_soon
        async def hang_up() -> None:
            await trio.sleep(1.05)
            sparks.close()

        await until_hangup(ours)
        assert trio.current_time() == pytest.approx(1.1)
