"""An observer, gates that hold nothing back, and groups of one record change nothing.

Neither calls, instants, sums and statistics nor the verdict. And an observer with some of the hooks sees the same as
one with all of them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextvars import ContextVar
from dataclasses import asdict, dataclass, replace
from functools import partial
from inspect import getmembers, isfunction
from math import inf
from random import Random
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from tests.observing import Several
from tests.plain_gates import AtMost, Listener
from tests.properties.runs import on_virtual_time
from trio_asyncio_io import AsyncWaitOperator, FixedDelay, Observer, Watermark
from trio_asyncio_io._core.observation import Observation
from trio_asyncio_io.gates import Gate, PerKey, RateLimit
from trio_asyncio_io.testing import Recorder, Scripted, Step

KEYS = "abc"


class BusyError(Exception):
    """The service requests a delay."""

    retry_after = 3.0


@dataclass
class Seen:
    """What a run has shown."""

    outputs: list[Any]
    calls: list[Any]
    statistics: dict[str, Any]
    totals: dict[str, Any]
    verdict: Any


def exact(seconds: float) -> float:
    """About these seconds, as a multiple of 2**-30: sums have no rounding errors, however many jumps a clock makes."""
    return round(seconds * 2**30) / 2**30 if seconds < inf else inf


def scenario_of(seed: int) -> tuple[list[str], dict[str, list[Step]], dict[str, Any]]:
    """The values, the steps of each one, and options."""
    random = Random(seed)
    values = [f"{random.choice(KEYS)}{number}" for number in range(random.randint(5, 40))]
    errors: list[Any] = [OSError, TimeoutError, BusyError, ValueError]
    steps = {
        value: [
            Step(random.randint(1, 4000) / 1024, error=random.choice(errors) if random.random() < 0.35 else None)
            for _ in range(5)
        ]
        for value in values
    }
    options: dict[str, Any] = {
        "mode": random.choice(["ordered", "unordered", "keyed"]),
        "capacity": random.choice([1, 2, 5, 20]),
        "timeout": exact(random.choice([3.1, 9.3, 30.7, inf])),
        "on_error": "skip",
        "flatten": random.random() < 0.3,
    }
    if options["mode"] == "keyed":
        options["key"] = lambda value: value[0]
    if random.random() < 0.7:
        delay = exact(random.choice([0.0, 0.37, 2.2, 11.1]))
        options["retry"] = FixedDelay(random.randint(0, 4), delay, retry_on=(OSError, TimeoutError, BusyError))
    return values, steps, options


async def source_of(values: list[str], seed: int) -> AsyncIterator[str]:
    """The values at different instants. Trio runs the tasks of one instant in random order, so equal runs differ."""
    random = Random(seed)
    for value in values:
        await trio.sleep(exact(random.random() / 100))
        yield value


def seen(seed: int, **others: Any) -> Seen:
    """Run the scenario with other options."""
    values, steps, options = scenario_of(seed)
    recorder: Recorder[Any, Any] = Recorder(Scripted(steps))
    function: Any = recorder if "group" not in others else of_lists(recorder)

    async def body() -> Seen:
        async with AsyncWaitOperator(function, source=source_of(values, seed), **options, **others) as operator:
            outputs = [output async for output in operator.output]
        numbers, totals = operator.statistics(), operator.totals()
        assert (numbers.running, numbers.buffered, recorder.running) == (0, 0, 0)
        assert recorder.peak_running <= numbers.peak_running <= options["capacity"]
        calls = sorted((call.value, call.started, call.ended) for call in recorder.calls)
        return Seen(
            sorted(outputs),
            calls,
            asdict(replace(numbers, throttled=0, groups=0, grouped=0)),  # counted only if there are gates, or groups
            asdict(replace(totals, cpu=0.0, throttled=0, groups=0, grouped=0, group=0)),
            operator.explain().limit,
        )

    found: Seen = on_virtual_time(body)
    return found


def of_lists(function: Recorder[Any, Any]) -> Any:
    """The same function of lists."""

    async def call(values: list[Any]) -> list[Any]:
        return [await function(value) for value in values]

    return call


SEEDS = st.integers(0, 1_000_000)


@given(SEEDS)
def test_an_observer_changes_nothing(seed: int) -> None:
    assert seen(seed, observer=Several()) == seen(seed)


@pytest.mark.variation
@given(SEEDS)
def test_an_observer_changes_nothing_in_front_of_gates(seed: int) -> None:
    capacity = scenario_of(seed)[2]["capacity"]

    def gate() -> Gate:
        return AtMost(min(2, capacity))

    assert seen(seed, gate=gate(), observer=Several()) == seen(seed, gate=gate())


@pytest.mark.variation
@given(SEEDS)
def test_an_observer_changes_nothing_in_front_of_gates_per_key(seed: int) -> None:
    def gate() -> Any:
        return PerKey(RateLimit(0.7), key=lambda value: value[0])

    assert seen(seed, gate=gate(), observer=Several()) == seen(seed, gate=gate())


def per_key() -> PerKey:
    """With gates per key, new records wait for no retries. So these are compared with each other."""
    return PerKey(Listener(), key=lambda value: value[0])


@given(SEEDS)
def test_gates_that_admit_each_call_change_no_call(seed: int) -> None:
    for gate, base in [(Listener(), None), ([Listener(), per_key()], per_key())]:
        with_gates, without = seen(seed, gate=gate), seen(seed, gate=base)
        assert (with_gates.outputs, with_gates.calls) == (without.outputs, without.calls)


@given(SEEDS)
def test_groups_of_one_record_change_nothing(seed: int) -> None:
    with_groups, without = seen(seed, group=1), seen(seed)
    assert with_groups.totals["busy"] == pytest.approx(without.totals["busy"])  # summed in another order
    with_groups.totals["busy"] = without.totals["busy"]
    assert with_groups == without


@pytest.mark.variation
@given(SEEDS)
def test_groups_of_one_record_change_nothing_in_front_of_gates_per_key(seed: int) -> None:
    def gate() -> Any:
        return PerKey(RateLimit(0.7), key=lambda value: value[0])

    with_groups, without = seen(seed, gate=gate(), group=1), seen(seed, gate=gate())
    assert with_groups.outputs == without.outputs
    for one, other in zip(with_groups.calls, without.calls, strict=True):
        assert one[0] == other[0]
        assert one[1:] == pytest.approx(other[1:])  # a gate adds up instants


@given(SEEDS)
def test_a_function_that_only_awaits_never_blocks(seed: int) -> None:
    """Whatever holds calls back: groups, gates, keys, watermarks, the buffer or a slow consumer."""
    values, steps, options = scenario_of(seed)
    random = Random(seed)
    group, capacity = random.choice([None, 2, 10]), options["capacity"]
    gate = random.choice([None, AtMost(1), PerKey(RateLimit(0.7), key=lambda value: value[0])])
    buffer = max(capacity, group or 1) + random.choice([0, 0, 3, 100])
    pause = random.choice([0.0, 0.0, 1.0])

    async def body() -> str:
        source = source_with_watermarks(values, seed)
        function = Scripted(steps) if group is None else of_lists(Scripted(steps))
        options.update(gate=gate, group=group, buffer=buffer, group_wait=random.choice([0.0, 1.0]))
        async with AsyncWaitOperator(function, source=source, **options) as operator:
            async for _ in operator.output:
                await trio.sleep(pause)
        assert operator.totals().blocked == 0.0
        return operator.explain().limit

    assert on_virtual_time(body) != "blocking"


HOOKS = [name for name, _ in getmembers(Observer, isfunction)]


class Overriding(Observer):
    """Overrides these hooks. Records each call, and what the hook `setting` has set in its context before.

    Args:
        failing: The number of the call, from 1, in which the hook `setting` raises. 0: never.
    """

    def __init__(self, hooks: Collection[str], setting: str, failing: int) -> None:
        self.steps: list[tuple[Any, ...]] = []
        self._setting, self._failing = setting, failing
        self._variable: ContextVar[Any] = ContextVar("set by a hook", default=None)
        for hook in hooks:
            setattr(self, hook, partial(self._record, hook))

    def _record(self, hook: str, *arguments: Any) -> None:
        details = () if hook.startswith("run_") else arguments
        self.steps.append((hook, trio.current_time(), self._variable.get(), *details))
        if hook == self._setting:
            self._variable.set(details)
            self._failing -= 1
            if not self._failing:
                raise ZeroDivisionError


def pairs_of(random: Random) -> list[tuple[Overriding, Overriding, list[str]]]:
    """Observers with all hooks and with some, which set and raise the same, and the hooks of the second one."""
    pairs = []
    for _ in range(10):
        hooks = random.sample(HOOKS, random.randint(1, 5))
        setting, failing = hooks[0], random.randint(0, 5)
        pairs.append((Overriding(HOOKS, setting, failing), Overriding(hooks, setting, failing), hooks))
    return pairs


async def source_with_watermarks(values: list[str], seed: int) -> AsyncIterator[Any]:
    """The values, with watermarks after some."""
    async for value in source_of(values, seed):
        yield value
        if value.endswith("5"):
            yield Watermark(value)


@given(SEEDS)
def test_an_observer_with_some_of_the_hooks_sees_the_same_as_one_with_all(seed: int) -> None:
    values, steps, options = scenario_of(seed)
    random = Random(seed)
    pairs, received = pairs_of(random), random.randint(0, 2 * len(values))  # the other calls are cancelled
    gate = PerKey(RateLimit(0.7), key=lambda value: value[0])
    options.update(gate=random.choice([None, gate]), group=random.choice([None, 1, 3]))
    has_groups = options["group"] is not None
    function = of_lists(Scripted(steps)) if has_groups else Scripted(steps)
    follow = Observation.follow

    def follow_by_all(_: Observation, *arguments: Any) -> None:
        for *observers, _hooks in pairs:
            for observer in observers:
                follow(Observation(observer, has_groups=has_groups), *arguments)

    async def body() -> None:
        source = source_with_watermarks(values, seed)
        async with AsyncWaitOperator(function, source=source, observer=Observer(), **options) as operator:
            for _ in range(received):
                await anext(operator.output, None)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Observation, "follow", follow_by_all)  # all of them observe one run: equal runs differ
        on_virtual_time(body)
    for everything, some, hooks in pairs:
        assert some.steps == [step for step in everything.steps if step[0] in hooks]
