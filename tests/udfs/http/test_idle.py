"""The idle stacks, as plain data."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from udfs.http._idle import IdleStacks
from udfs.http._origin import Origin

HERE = Origin(b"http", b"here", 80)
THERE = Origin(b"http", b"there", 80)


@dataclass(frozen=True)
class Connection:
    origin: Origin
    name: str


A, B, C = Connection(HERE, "a"), Connection(HERE, "b"), Connection(THERE, "c")


def stacks(*connections: Connection) -> IdleStacks[Connection]:
    idle: IdleStacks[Connection] = IdleStacks()
    for connection in connections:
        idle.push(connection)
    return idle


def test_the_freshest_of_an_origin_comes_out_first() -> None:
    idle = stacks(A, B, C)
    assert [idle.pop(HERE), idle.pop(HERE), idle.pop(HERE)] == [B, A, None]


def test_an_origin_gets_its_own_connections_only() -> None:
    idle = stacks(A)
    assert idle.pop(THERE) is None
    assert len(idle) == 1


def test_the_oldest_is_the_one_that_has_been_idle_longest_over_all_origins() -> None:
    idle = stacks(C, A, B)
    assert [idle.pop_oldest(), idle.pop_oldest(), idle.pop_oldest()] == [C, A, B]


def test_to_be_used_makes_a_connection_young_again() -> None:
    idle = stacks(A, C)
    used = idle.pop(HERE)
    assert used is A
    idle.push(used)
    assert idle.oldest() is C


def test_looking_at_the_oldest_leaves_it_where_it_is() -> None:
    idle = stacks(A)
    assert idle.oldest() is A
    assert len(idle) == 1


def test_nothing_is_oldest_when_nothing_is_idle() -> None:
    idle = stacks()
    assert idle.oldest() is None
    with pytest.raises(IndexError, match="no connection is idle"):
        idle.pop_oldest()


def test_drain_takes_all_the_oldest_first() -> None:
    idle = stacks(C, A, B)
    assert idle.drain() == [C, A, B]
    assert len(idle) == 0
    assert idle.pop(HERE) is None


def test_an_origin_without_connections_takes_no_memory() -> None:
    idle = stacks(A, C)
    idle.pop(HERE)
    idle.pop_oldest()
    assert idle._stacks == {}
