"""While all tasks wait, no attempt may start: no change of a slot, a gate, a retry or a group is missed."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
import trio
from hypothesis import example, given
from trio.testing import wait_all_tasks_blocked

from tests.plain_gates import AtMost
from tests.properties.runs import on_virtual_time
from tests.properties.test_comparison import SEEDS, of_lists, scenario_of, source_of
from trio_asyncio_io import AsyncWaitOperator
from trio_asyncio_io._core.scheduler import Scheduler
from trio_asyncio_io.gates import CircuitBreaker, PerKey, RateLimit
from trio_asyncio_io.testing import Scripted


def gates_of(random: Random, capacity: int) -> Any:
    """One to three gates, or none."""
    gates = [
        RateLimit(random.choice([0.7, 3.0, 50.0]), burst=random.choice([1.0, 4.0])),
        AtMost(min(2, capacity)),
        CircuitBreaker(),
        PerKey([RateLimit(0.9, name="of a key"), AtMost(1)], key=lambda value: value[0]),
    ]
    return random.sample(gates, random.randint(1, 3)) if random.random() < 0.9 else None


@given(SEEDS)
@example(208)  # the first group in the line has to wait for its key's gates, and the second one may start
def test_no_attempt_may_start_while_all_tasks_wait(seed: int) -> None:
    values, steps, options = scenario_of(seed)
    random = Random(seed)
    group = random.choice([None, None, 2, 10])
    options.update(gate=gates_of(random, options["capacity"]), group=group, on_error="skip")
    schedulers: list[Scheduler] = []

    class Seen(Scheduler):
        def __init__(self, *arguments: Any, **others: Any) -> None:
            super().__init__(*arguments, **others)
            schedulers.append(self)

    async def watch() -> None:
        while True:
            await wait_all_tasks_blocked()
            (scheduler,) = schedulers
            assert not scheduler.starts
            assert not scheduler.may_assign()
            await trio.sleep(0.0625)

    async def body() -> None:
        function = Scripted(steps) if group is None else of_lists(Scripted(steps))
        operator = AsyncWaitOperator(function, source=source_of(values, seed), **options)
        async with operator, trio.open_nursery() as nursery:
            nursery.start_soon(watch)
            async for _ in operator.output:
                pass
            nursery.cancel_scope.cancel()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("trio_asyncio_io._operator.operator.Scheduler", Seen)
        on_virtual_time(body)
