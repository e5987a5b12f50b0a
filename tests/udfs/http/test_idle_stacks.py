"""IdleStacks, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from udfs.http._origin import Origin
from udfs.http._pool import IdleStacks

HERE = Origin(b"http", b"here", 80)
THERE = Origin(b"http", b"there", 80)


@dataclass(frozen=True)
class Connection:
    origin: Origin
    name: str


A, B, C = Connection(HERE, "a"), Connection(HERE, "b"), Connection(THERE, "c")


def stacks(*connections: Any) -> IdleStacks:
    idle = IdleStacks()
    for connection in connections:
        idle.push(connection)
    return idle


def test_pop_returns_the_newest_connection_of_an_origin() -> None:
    idle = stacks(A, B, C)
    assert [idle.pop(HERE), idle.pop(HERE), idle.pop(HERE)] == [B, A, None]


def test_an_origin_gets_only_its_own_connections() -> None:
    idle = stacks(A)
    assert idle.pop(THERE) is None
    assert len(idle) == 1


def test_pop_oldest_returns_the_connection_idle_longest_over_all_origins() -> None:
    idle = stacks(C, A, B)
    assert [idle.pop_oldest(), idle.pop_oldest(), idle.pop_oldest()] == [C, A, B]


def test_a_reused_connection_is_the_newest_again() -> None:
    idle = stacks(A, C)
    used = idle.pop(HERE)
    assert used is A
    idle.push(used)
    assert idle.oldest() is C


def test_oldest_does_not_remove_the_connection() -> None:
    idle = stacks(A)
    assert idle.oldest() is A
    assert len(idle) == 1


def test_without_connections_there_is_no_oldest() -> None:
    idle = stacks()
    assert idle.oldest() is None
    with pytest.raises(IndexError, match="no connection is idle"):
        idle.pop_oldest()


def test_drain_returns_all_connections_oldest_first() -> None:
    idle = stacks(C, A, B)
    assert idle.drain() == [C, A, B]
    assert len(idle) == 0
    assert idle.pop(HERE) is None
