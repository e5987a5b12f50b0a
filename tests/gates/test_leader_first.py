"""LeaderFirst: one call fills the cache of a service before the others start."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import trio

from trio_asyncio_io import unordered_wait
from trio_asyncio_io.gates import Gate, LeaderFirst, Outcome, PerKey

OK, ERROR, CANCELLED = (Outcome(kind) for kind in ("ok", "error", "cancelled"))


class Service:
    """Notes when each call starts. A call takes a second, and fails if its value is in `failing`."""

    def __init__(self, failing: str = "") -> None:
        self.starts: dict[str, float] = {}
        self._failing = failing

    async def __call__(self, value: str) -> str:
        self.starts[value] = trio.current_time()
        await trio.sleep(1.0)
        if value in self._failing.split():
            raise ValueError(value)
        return value


async def starts_of(values: str, gate: Gate | PerKey, failing: str = "") -> dict[str, float]:
    """The seconds after which the calls for these values have started."""
    service, begin = Service(failing), trio.current_time()
    source = values.split()
    async with unordered_wait(source, service, timeout=60.0, capacity=10, gate=gate, on_error="skip") as results:
        async for _ in results:
            pass
    return {value: start - begin for value, start in service.starts.items()}


async def test_the_others_start_when_the_leader_has_returned(autojump_clock: Any) -> None:
    assert await starts_of("a b c", LeaderFirst()) == {"a": 0.0, "b": 1.0, "c": 1.0}


async def test_after_a_leader_that_fails_the_next_call_leads(autojump_clock: Any) -> None:
    assert await starts_of("a b c d", LeaderFirst(), failing="a b") == {"a": 0.0, "b": 1.0, "c": 2.0, "d": 3.0}


async def test_each_key_has_a_leader(autojump_clock: Any) -> None:
    gate = PerKey(LeaderFirst(), key=lambda value: value[0])
    assert await starts_of("a1 a2 b1 b2", gate) == {"a1": 0.0, "a2": 1.0, "b1": 0.0, "b2": 1.0}


async def test_a_later_operator_needs_no_leader_while_the_cache_is_filled(autojump_clock: Any) -> None:
    gate = LeaderFirst(ttl=10.0)
    await starts_of("a", gate)
    await trio.sleep(9.5)
    assert await starts_of("b c", gate) == {"b": 0.0, "c": 0.0}
    await trio.sleep(10.0)
    assert await starts_of("d e", gate) == {"d": 0.0, "e": 1.0}


@pytest.mark.parametrize("outcome", [ERROR, CANCELLED])
def test_a_leader_that_does_not_return_fills_nothing(outcome: Outcome) -> None:
    gate = LeaderFirst()
    gate.started(0.0, 1.0)
    assert gate.delay(1.0, 1.0) == math.inf
    gate.ended(2.0, 2.0, outcome, 1.0)
    assert gate.delay(2.0, 1.0) == 0.0
    gate.started(2.0, 1.0)
    assert gate.delay(2.0, 1.0) == math.inf


def test_an_older_call_that_fails_does_not_end_the_turn_of_a_leader() -> None:
    gate = LeaderFirst(ttl=5.0)
    gate.started(0.0, 1.0)
    gate.ended(1.0, 1.0, OK, 1.0)
    gate.started(5.0, 1.0)  # the cache is filled until 6.0
    gate.started(7.0, 1.0)  # leads
    gate.ended(8.0, 3.0, ERROR, 1.0)
    assert gate.delay(8.0, 1.0) == math.inf


def test_an_older_call_that_returns_fills_the_cache_for_a_leader() -> None:
    gate = LeaderFirst(ttl=5.0)
    gate.started(0.0, 1.0)
    gate.ended(1.0, 1.0, OK, 1.0)
    gate.started(5.0, 1.0)
    gate.started(7.0, 1.0)  # leads
    gate.ended(8.0, 3.0, OK, 1.0)
    assert gate.delay(8.0, 1.0) == 0.0
    gate.ended(8.5, 1.5, ERROR, 1.0)
    assert gate.delay(9.0, 1.0) == 0.0


def test_a_gate_may_be_forgotten_when_no_leader_runs_and_the_cache_is_empty() -> None:
    gate = LeaderFirst(ttl=5.0)
    assert gate.may_forget(0.0)
    gate.started(0.0, 1.0)
    assert not gate.may_forget(100.0)
    gate.ended(100.0, 100.0, OK, 1.0)
    assert not gate.may_forget(104.9)
    assert gate.may_forget(105.0)


def test_a_copy_by_pickle_has_the_options_and_no_state() -> None:
    gate = LeaderFirst(5.0, name="documents")
    gate.started(0.0, 1.0)
    copy = pickle.loads(pickle.dumps(gate))
    assert (copy.ttl, copy.name, copy.delay(0.0, 1.0)) == (5.0, "documents", 0.0)
    assert repr(copy) == "LeaderFirst(ttl=5.0, name='documents')"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LeaderFirst(0.0), "ttl must be seconds above 0, got 0.0"),
        (lambda: LeaderFirst(name=""), "name must"),
    ],
)
def test_invalid_options_are_named(make: Callable[[], Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        make()
