"""IdleStacks, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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


def test_oldest_is_the_connection_idle_longest_over_all_origins() -> None:
    idle = stacks(C, A, B)
    order = []
    while (oldest := idle.oldest()) is not None:
        order.append(oldest)
        idle.remove(oldest)
    assert order == [C, A, B]
    assert idle.pop(HERE) is None


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


def test_a_removed_connection_is_on_no_stack() -> None:
    idle = stacks(A, B)
    idle.remove(B)
    assert [idle.pop(HERE), idle.pop(HERE)] == [A, None]
    assert idle.oldest() is None
