"""Gates by name: one gate for several operators of a Trio run, and the life of gates in use."""

from __future__ import annotations

import gc
import pickle
import weakref
from functools import partial
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.plain_gates import Throttle
from trio_asyncio_io import ordered_wait
from trio_asyncio_io.gates import Auto, CircuitBreaker, Gate, RateLimit, settle
from trio_asyncio_io.testing import Recorder, Scripted, Step


class ThrottledError(Exception):
    retry_after = 20.0


async def operate(values: Any, function: Any, gate: Any, **options: Any) -> list[Any]:
    async with ordered_wait(values, function, timeout=60.0, gate=gate, **options) as results:
        return [result async for result in results]


async def both(one: Any, other: Any) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(one)
        nursery.start_soon(other)


async def test_gates_of_one_name_are_one_gate(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted())
    first = partial(operate, "abc", recorder, RateLimit(1.0, name="api"))
    await both(first, partial(operate, "de", recorder, RateLimit(1.0, name="api")))
    assert sorted(call.started for call in recorder.calls) == [0.0, 1.0, 2.0, 3.0, 4.0]


async def test_gates_of_different_names_or_classes_are_different(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted())
    gates = [RateLimit(1.0, name="api"), Auto(most=9, name="api")]
    await both(
        partial(operate, "ab", recorder, gates), partial(operate, "ab", recorder, RateLimit(1.0, name="other api"))
    )
    assert sorted(call.started for call in recorder.calls) == [0.0, 0.0, 1.0, 1.0]


async def test_what_a_named_gate_has_learnt_outlives_the_operator(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted())
    for _ in range(2):
        await operate("a", recorder, RateLimit(0.1, name="api"))
    assert [call.started for call in recorder.calls] == [0.0, 10.0]


async def test_a_gate_that_becomes_busy_holds_back_the_calls_of_all_operators_with_its_name(
    autojump_clock: MockClock,
) -> None:
    recorder = Recorder(Scripted(default=Step(2.0)))

    async def throttled(value: str) -> None:
        await trio.sleep(1.0)
        raise ThrottledError

    await both(
        partial(operate, "x", throttled, Throttle(name="api"), on_error="skip"),
        partial(operate, "ab", recorder, Throttle(name="api"), capacity=1),
    )
    assert [call.started for call in recorder.calls] == [0.0, 1.0 + 20.0]


async def test_each_operator_applies_the_weight_of_its_own_gate(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted())
    await operate([3], recorder, RateLimit(1.0, weight=lambda value: value, name="api"))
    await operate("ab", recorder, RateLimit(1.0, name="api"))
    assert [call.started for call in recorder.calls] == [0.0, 3.0, 4.0]


async def test_a_settled_weight_counts_for_all_operators(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted())

    async def settled(value: str) -> None:
        settle(7.0)

    await operate("a", recorder, RateLimit(1.0, name="api"))
    await operate("a", settled, RateLimit(1.0, weight=len, name="api"))
    await operate("a", recorder, RateLimit(1.0, name="api"))
    assert [call.started for call in recorder.calls] == [0.0, 8.0]


async def test_each_operator_classifies_by_its_own_gate(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted())

    async def fail(value: str) -> None:
        raise ThrottledError

    mine = Throttle(name="api", classify=lambda error: "error")
    await operate("a", fail, mine, on_error="skip")
    await operate("a", recorder, Throttle(name="api"))
    assert [call.started for call in recorder.calls] == [0.0]


async def test_a_name_that_is_in_use_with_another_configuration_is_refused() -> None:
    in_use, given = RateLimit(50, name="api"), RateLimit(10, burst=2, name="api")
    message = (
        r"^two different gates have the name 'api': RateLimit\(rate=50.0, burst=1.0, name='api'\) is in use, and "
        r"RateLimit\(rate=10.0, burst=2.0, name='api'\) was given. Give both the same arguments, or different names$"
    )
    async with ordered_wait("a", Scripted(), timeout=1.0, gate=in_use) as results:
        with pytest.raises(ValueError, match=message):
            await operate("a", Scripted(), [RateLimit(1, name="other"), given])
        await operate("a", Scripted(), RateLimit(2, name="other"))  # the refused operator uses nothing
        assert [result async for result in results] == ["a"]


async def test_a_name_that_nobody_uses_can_get_another_configuration(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted())
    await operate("a", recorder, RateLimit(0.001, name="api"))
    await operate("ab", recorder, RateLimit(1.0, name="api"))
    assert [call.started for call in recorder.calls] == [0.0, 0.0, 1.0]


def test_a_named_gate_is_one_per_trio_run() -> None:
    starts: list[float] = []

    async def main(gate: Gate) -> None:
        recorder = Recorder(Scripted())
        await operate("a", recorder, gate)
        starts.extend(call.started for call in recorder.calls)

    mine = RateLimit(0.1, name="api")
    for gate in (mine, RateLimit(0.1, name="api"), mine):
        trio.run(main, gate, clock=MockClock(autojump_threshold=0))
    assert starts == [0.0, 0.0, 10.0]  # an object continues where it was, as one without a name does


@pytest.mark.parametrize("name", [None, "api"])
def test_a_gate_is_freed_with_the_operators_and_the_run_that_used_it(name: str | None) -> None:
    gates: list[weakref.ref[Gate]] = []

    async def main() -> None:
        gate = RateLimit(1.0, name=name)
        gates.append(weakref.ref(gate))
        await operate("a", Scripted(), gate)

    trio.run(main, clock=MockClock(autojump_threshold=0))
    gc.collect()
    assert gates[0]() is None


@pytest.mark.parametrize(
    "gate",
    [
        RateLimit(2, burst=3, name="n"),
        Auto(3, 30, name="n"),
        CircuitBreaker(
            "fail", share=0.3, calls=5, window=4.0, open_for=3.0, max_open=9.0, trickle=2, give_up=8, name="n"
        ),
    ],
    ids=lambda gate: type(gate).__name__,
)
def test_a_gate_pickles_with_its_name_and_configuration(gate: Gate) -> None:
    copy = pickle.loads(pickle.dumps(gate))
    assert (copy.name, copy.configuration(), repr(copy)) == ("n", gate.configuration(), repr(gate))


@pytest.mark.parametrize("kind", [partial(RateLimit, 1), Auto, CircuitBreaker])
@pytest.mark.parametrize(
    ("name", "message"), [("", "name must not be empty, got ''"), (7, "name must be a string, got 7")]
)
def test_a_name_is_text(kind: Any, name: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=f"^{message}$"):
        kind(name=name)


def test_the_representation_shows_what_is_compared() -> None:
    assert repr(RateLimit(2, weight=len)) == "RateLimit(rate=2.0, burst=1.0)"
    assert repr(Auto(name="api")) == "Auto(start=None, most=800, give_up=300.0, name='api')"
