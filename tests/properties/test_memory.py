"""Count the elements that are alive, from outside: never more than the buffer, what the consumer holds, and one more.

The one more is the element in the feeder's hand. A worker that waits keeps no element.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Iterator
from random import Random
from typing import Any
from weakref import WeakSet

import trio
from hypothesis import given
from hypothesis import strategies as st

from tests.plain_gates import AtMost
from tests.properties.runs import on_virtual_time
from trio_asyncio_io import AsyncWaitOperator, Watermark
from trio_asyncio_io.gates import RateLimit
from trio_asyncio_io.policies import hedged

ELEMENTS = 60


class Value:
    """An element of which one can see whether it is alive."""

    def __init__(self, number: int) -> None:
        self.number = number


class Alive:
    """A source of values, and those of them that are alive."""

    def __init__(self, *, has_watermarks: bool) -> None:
        self.values: WeakSet[Value] = WeakSet()
        self._has_watermarks = has_watermarks

    def source(self) -> Iterator[Any]:
        for number in range(ELEMENTS):
            if self._has_watermarks and number % 7 == 3:
                yield Watermark(number)
            value = Value(number)
            self.values.add(value)
            yield value
            del value

    def count(self, expected: int) -> int:
        """The number of values alive. Those in reference cycles do not count: exceptions and their tracebacks."""
        if len(self.values) > expected:
            gc.collect()
        return len(self.values)


OPTIONS = st.fixed_dictionaries(
    {
        "mode": st.sampled_from(["ordered", "unordered", "keyed"]),
        "capacity": st.integers(1, 4),
        "timeout": st.sampled_from([0.5, 1_000.0, math.inf]),
        "on_error": st.just("skip"),
        "flatten": st.booleans(),
    },
    optional={
        "gate": st.builds(AtMost, st.just(1)) | st.builds(RateLimit, st.just(20.0)),
    },
)


@given(OPTIONS, st.none() | st.integers(1, 3), st.booleans(), st.integers(0, 8), st.integers(0, 99))
def test_the_buffer_bounds_the_elements_alive(
    options: dict[str, Any], group: int | None, is_hedged: bool, more: int, seed: int
) -> None:
    random, alive = Random(seed), Alive(has_watermarks=seed % 2 == 1)
    buffer = max(options["capacity"], group or 1) + more

    async def call(value: Value) -> Any:
        await trio.sleep(random.choice([0.0, 0.1, 1.0]))
        if random.random() < 0.3:
            raise OSError
        return [value] * random.randrange(3) if options["flatten"] else value

    async def call_group(values: list[Value]) -> list[Any]:
        await trio.sleep(random.choice([0.0, 0.1, 1.0]))
        return [OSError() if random.random() < 0.3 else [value] if options["flatten"] else value for value in values]

    async def body() -> None:
        function: Any = call if group is None else call_group
        if group is not None:
            options["group"] = group
        elif is_hedged:
            function = hedged(call, after=0.3)
        if options["mode"] == "keyed":
            options["key"] = lambda value: value.number % 3
        async with AsyncWaitOperator(function, source=alive.source(), buffer=buffer, **options) as operator:
            async for output in operator.output:
                del output
                await trio.sleep(random.choice([0.0, 0.2]))
                assert alive.count(buffer + 1) <= buffer + 1

    on_virtual_time(body)
    assert alive.count(0) == 0
