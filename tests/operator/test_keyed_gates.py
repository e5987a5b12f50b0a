"""Gates per key: a key that is held back holds back no other one, and no slot."""

from __future__ import annotations

import math
import pickle
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.plain_gates import Throttle
from tests.support import outputs
from trio_asyncio_io import FixedDelay, Histogram, ordered_wait, unordered_wait
from trio_asyncio_io.gates import CircuitBreaker, Gate, Outcome, PerKey, RateLimit, RefusedError, settle
from trio_asyncio_io.testing import Recorder, Scripted, Step, fails_first

pytestmark = pytest.mark.usefixtures("no_cpu_time")


class ThrottledError(Exception):
    """No call may start for these seconds. Retry strategies do not see them."""

    def __init__(self, pause: float) -> None:
        super().__init__()
        self.pause = pause


def outcome(error: Exception) -> Outcome:
    return Outcome("throttled", error.pause, error) if isinstance(error, ThrottledError) else Outcome("error")


def throttle(apart: float = 0.05, *, name: str | None = None) -> Throttle:
    return Throttle(apart, classify=outcome, name=name)


def first_letter(value: str) -> str:
    return value[0]


def per_letter(*gates: Gate) -> PerKey:
    return PerKey(list(gates), key=first_letter)


def throttled(seconds: float, *, times: int = 1) -> list[Step]:
    return [Step(0.0, error=ThrottledError(seconds))] * times + [Step(0.0)]


def starts_of(recorder: Recorder[Any, Any]) -> dict[Any, list[float]]:
    starts: dict[Any, list[float]] = {}
    for call in recorder.calls:
        starts.setdefault(call.value, []).append(call.started)
    return starts


async def test_each_key_has_its_own_gates_in_every_mode(async_wait: Any, autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted(default=Step(0.5)))
    values = ["a1", "b1", "a2", "a3", "b2"]
    results = await outputs(async_wait(values, recorder, timeout=1.0, gate=per_letter(RateLimit(1.0))))
    assert sorted(results) == sorted(values)
    assert starts_of(recorder) == {"a1": [0.0], "b1": [0.0], "a2": [1.0], "a3": [2.0], "b2": [1.0]}


async def test_a_retry_of_a_key_that_is_held_back_gives_its_slot_back(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted({"a1": throttled(50.0)}, default=Step(1.0)))
    retry = FixedDelay(1, 0.0, retry_on=ThrottledError)
    values = ["a1", "a2", "b1", "b2"]
    results = await outputs(
        unordered_wait(values, recorder, timeout=5.0, capacity=1, retry=retry, gate=per_letter(throttle()))
    )
    assert results == ["b1", "b2", "a1", "a2"]
    assert starts_of(recorder) == {"a1": [0.0, 50.0], "b1": [0.0], "b2": [1.0], "a2": [pytest.approx(50.05)]}


async def test_calls_of_one_key_start_in_their_order_and_retries_first(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted({"a2": fails_first(1, OSError)}))
    gate = per_letter(RateLimit(1.0))
    values = ["a1", "a2", "a3", "a4"]
    await outputs(ordered_wait(values, recorder, timeout=1.0, retry=FixedDelay(1, 0.0), gate=gate))
    assert starts_of(recorder) == {"a1": [0.0], "a2": [1.0, 2.0], "a3": [3.0], "a4": [4.0]}


async def test_a_key_that_closes_while_its_call_waits_for_a_common_gate_blocks_no_other(
    autojump_clock: MockClock,
) -> None:
    """a2 is the first at the common gate when a1 fails."""
    recorder = Recorder(Scripted({"a1": Step(1.0, error=ThrottledError(50.0))}))
    gate = [RateLimit(0.5), per_letter(throttle())]
    await outputs(unordered_wait(["a1", "a2", "b1"], recorder, timeout=2.0, gate=gate, on_error="skip", capacity=2))
    assert starts_of(recorder) == {"a1": [0.0], "b1": [2.0], "a2": [51.0]}


async def test_a_call_whose_key_is_none_passes_only_the_other_gates(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted({"x": fails_first(1, ThrottledError(50.0))}))
    gate = [RateLimit(1.0), PerKey(RateLimit(0.1), key=lambda value: None if value == "x" else value)]
    await outputs(ordered_wait("xxaa", recorder, timeout=1.0, gate=gate, retry=FixedDelay(1, 0.0)))
    assert starts_of(recorder) == {"x": [0.0, 1.0, 2.0], "a": [3.0, 13.0]}


async def test_the_waits_count_as_gate_wait_and_neither_as_latency_nor_as_slot_wait(autojump_clock: MockClock) -> None:
    script = Scripted({"a1": throttled(50.0), "b1": Step(52.0)}, default=Step(1.0))
    retry = FixedDelay(1, 0.0, retry_on=ThrottledError)
    async with unordered_wait(
        ["a1", "b1"], script, timeout=60.0, capacity=1, retry=retry, gate=per_letter(throttle())
    ) as results:
        assert [result async for result in results] == ["b1", "a1"]
    numbers = results.statistics()
    assert numbers.gate_wait == Histogram.of([50.0])
    assert numbers.slot_wait_seconds == 2.0
    assert numbers.latency == Histogram.of([0.0, 52.0])


async def test_the_wait_moves_the_deadline_of_a_retry(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted({"a1": [*throttled(50.0)[:1], Step(0.9)], "b1": Step(55.0)}))
    retry = FixedDelay(1, 0.0, retry_on=ThrottledError)
    gate = per_letter(throttle())
    values = ["a1", "b1"]
    results = unordered_wait(values, recorder, timeout=60.0, capacity=1, retry=retry, gate=gate)
    assert await outputs(results) == ["b1", "a1"]
    with pytest.raises(Exception, match="within its timeout of 1 s"):
        await outputs(ordered_wait(["a2"], Scripted(default=Step(1.1)), timeout=1.0, retry=retry, gate=gate))


async def test_a_gate_per_key_is_not_the_verdict_while_calls_of_other_keys_use_all_slots(
    autojump_clock: MockClock,
) -> None:
    values = ["a1", "a2", *[f"b{number}" for number in range(100)]]
    gate = PerKey(RateLimit(0.02), key=lambda value: "a" if value[0] == "a" else value)
    async with unordered_wait(values, Scripted(default=Step(1.0)), timeout=2.0, capacity=2, gate=gate) as results:
        assert len([result async for result in results]) == 102
    assert results.explain().limit == "capacity"


async def test_an_idle_gate_takes_part_from_the_first_failure_of_its_key(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted({"a1": Step(1.0, error=ConnectionError)}, default=Step(3.0)))
    gate = per_letter(CircuitBreaker(calls=1, open_for=20.0))
    await outputs(
        unordered_wait(["a1", "b1", "a2", "b2"], recorder, timeout=5.0, capacity=2, gate=gate, on_error="skip")
    )
    starts = starts_of(recorder)
    assert (starts["b1"], starts["b2"]) == ([0.0], [1.0])
    assert 17.0 <= starts["a2"][0] <= 25.0


async def test_what_was_learnt_lasts_for_the_next_operator(autojump_clock: MockClock) -> None:
    gate = per_letter(throttle())
    await outputs(ordered_wait(["a1"], Scripted({"a1": throttled(50.0)}), timeout=1.0, gate=gate, on_error="skip"))
    recorder = Recorder(Scripted())
    await outputs(unordered_wait(["a2", "b1"], recorder, timeout=1.0, gate=gate))
    assert starts_of(recorder) == {"a2": [50.0], "b1": [0.0]}


@pytest.mark.parametrize("name", [None, "api"], ids=["one object", "one name"])
async def test_operators_share_the_gates_of_a_key(name: str | None, autojump_clock: MockClock) -> None:
    mine = per_letter(throttle(name=name))
    other = mine if name is None else per_letter(throttle(name=name))
    recorder = Recorder(Scripted({"a1": [Step(1.0, error=ThrottledError(50.0))]}, default=Step(2.0)))

    async def run(values: list[str], gate: PerKey) -> None:
        await outputs(unordered_wait(values, recorder, timeout=5.0, gate=gate, capacity=1, on_error="skip"))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run, ["a1"], mine)
        nursery.start_soon(run, ["b1", "a2", "b2"], other)
    assert starts_of(recorder) == {"a1": [0.0], "b1": [0.0], "b2": [2.0], "a2": [51.0]}


async def test_a_key_is_forgotten_when_its_gates_have_learnt_nothing(autojump_clock: MockClock) -> None:
    gate = PerKey([throttle(), RateLimit(10.0)], key=lambda value: value)
    copies = gate.copies[0]
    script = Scripted({0: Step(0.0, error=ThrottledError(5.0))}, default=Step(0.0))

    async def source() -> Any:
        for number in range(2_000):
            yield number
            await trio.sleep(0.1)

    peak = 0
    async with unordered_wait(source(), script, timeout=1.0, gate=gate, on_error="skip") as results:
        async for _ in results:
            peak = max(peak, len(copies))
    assert peak < 200
    assert list(copies) == [0]  # the throttled one


async def test_keys_that_may_be_forgotten_displace_no_other_key(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trio_asyncio_io._operator.gates.MAX_UNUSED", 1_000)
    gate = PerKey(RateLimit(1.0, weight=lambda value: 1000.0 if value == "big" else 1.0), key=lambda value: value)
    recorder = Recorder(Scripted())

    async def source() -> Any:
        yield "big"
        for number in range(3_000):  # a bucket is full again after a second
            if number % 600 == 0:
                await trio.sleep(1.0)
            yield number
        yield "big"

    await outputs(unordered_wait(source(), recorder, timeout=1.0, gate=gate))
    assert starts_of(recorder)["big"] == [0.0, 1000.0]


class Count(Gate):
    """Counts the calls of its key, and must not be forgotten."""

    calls = 0

    def delay(self, now: float, weight: float) -> float:
        return 0.0

    def started(self, now: float, weight: float) -> None:
        self.calls += 1

    def may_forget(self, now: float) -> bool:
        return False


async def test_the_least_recently_used_of_too_many_keys_are_forgotten(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trio_asyncio_io._operator.gates.MAX_UNUSED", 50)
    gate = PerKey(Count(), key=lambda value: value)
    for values in (range(60), [0], range(60, 80)):
        await outputs(unordered_wait(values, Scripted(), timeout=1.0, gate=gate))
    counts = {key: copy.calls for key, copy in gate.copies[0].items() if isinstance(copy, Count)}
    assert counts == {0: 2, **dict.fromkeys(range(11, 80), 1)}


async def test_a_pickled_copy_has_learnt_nothing(autojump_clock: MockClock) -> None:
    gate = per_letter(throttle(0.2), CircuitBreaker())
    await outputs(ordered_wait(["a1"], Scripted({"a1": throttled(50.0)}), timeout=1.0, gate=gate, on_error="skip"))
    copy = pickle.loads(pickle.dumps(gate))
    recorder = Recorder(Scripted())
    await outputs(ordered_wait(["a2"], recorder, timeout=1.0, gate=copy))
    assert starts_of(recorder) == {"a2": [0.0]}
    assert repr(copy) == repr(gate)


async def test_a_weight_counts_and_can_be_settled(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted())

    async def settled(value: str) -> None:
        await recorder.invoke(value)
        settle(7.0)

    gate = per_letter(RateLimit(1.0, weight=len))
    await outputs(ordered_wait(["a1", "a2", "b1"], settled, timeout=1.0, capacity=1, gate=gate))
    assert starts_of(recorder) == {"a1": [0.0], "a2": [7.0], "b1": [0.0]}


@pytest.mark.parametrize("gate", [5, [], [5], "gate", PerKey(RateLimit(1.0), key=len)], ids=str)
def test_the_gate_of_a_per_key_is_a_gate(gate: Any) -> None:
    with pytest.raises(TypeError, match=r"^the gate of a PerKey must be a Gate or a list of gates, got "):
        PerKey(gate, key=len)


def test_the_key_is_callable() -> None:
    with pytest.raises(TypeError, match=r"^key must be "):
        PerKey(RateLimit(1.0), key="host")  # type: ignore[arg-type]


def test_an_operator_has_one_per_key_at_most() -> None:
    gate = [PerKey(RateLimit(1.0), key=len), PerKey(RateLimit(2.0), key=len)]
    with pytest.raises(ValueError, match=r"^gate must have at most one PerKey, got "):
        ordered_wait("ab", Scripted(), timeout=1.0, gate=gate)


class Refusing(Gate):
    """Admits one call at once, and refuses calls as soon as one has failed."""

    def __init__(self) -> None:
        self.running = 0
        self.has_failed = False

    def delay(self, now: float, weight: float) -> float:
        if self.has_failed:
            raise RefusedError("no more")
        return math.inf if self.running else 0.0

    def started(self, now: float, weight: float) -> None:
        self.running += 1

    def ended(self, now: float, seconds: float, outcome: Outcome, weight: float) -> None:
        self.running -= 1
        self.has_failed = outcome.error is not None


async def test_calls_that_wait_are_refused_when_their_gate_refuses(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted({"a1": Step(1.0, error=OSError)}, default=Step(1.0)))
    values = ["a1", "a2", "a3", "b1"]
    async with unordered_wait(
        values, recorder, timeout=2.0, gate=per_letter(Refusing()), on_error="dead_letter"
    ) as results:
        assert [result async for result in results] == ["b1"]
        failed = [each async for each in results.dead_letters]
    assert [(each.element, type(each.error), each.attempts) for each in failed] == [
        ("a1", OSError, 1),
        ("a2", RefusedError, 0),
        ("a3", RefusedError, 0),
    ]


async def test_a_name_in_use_with_another_configuration_is_refused() -> None:
    async with ordered_wait("a", Scripted(), timeout=1.0, gate=per_letter(RateLimit(50, name="api"))):
        with pytest.raises(ValueError, match="two different gates have the name 'api'"):
            await outputs(ordered_wait("a", Scripted(), timeout=1.0, gate=per_letter(RateLimit(5, name="api"))))
