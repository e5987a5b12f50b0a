"""`flatten=True`: any number of outputs per element."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest
from trio.testing import MockClock

from tests.support import outputs
from trio_asyncio_io import StreamRecord, ordered_wait
from trio_asyncio_io.testing import Scripted, Step

NEVER = Step(math.inf)


@pytest.mark.parametrize("as_iterable", [list, tuple, iter, set, lambda values: (value for value in values)])
async def test_a_flattened_result_is_any_number_of_outputs(autojump_clock: MockClock, as_iterable: Any) -> None:
    function = Scripted({value: Step(3.0 - value, result=as_iterable(["x"] * value)) for value in range(3)})
    async with ordered_wait(range(3), function, timeout=5.0, flatten=True) as results:
        assert len([result async for result in results]) == (2 if as_iterable is set else 3)
    assert results.statistics().completed == 3


async def test_the_outputs_of_one_element_are_consecutive_in_every_mode(
    async_wait: Any, autojump_clock: MockClock
) -> None:
    function = Scripted({value: Step(1.0 + value % 3, result=[value] * 30) for value in range(9)})
    out = await outputs(async_wait(range(9), function, timeout=5.0, flatten=True, capacity=4, buffer=4))
    groups = [out[start : start + 30] for start in range(0, len(out), 30)]
    assert sorted(groups) == [[value] * 30 for value in range(9)]


async def test_each_output_has_the_timestamp_of_its_record(async_wait: Any) -> None:
    function = Scripted(default=Step(result=["x", "y"]))
    out = await outputs(async_wait([StreamRecord("a", 7)], function, timeout=5.0, flatten=True))
    assert out == [StreamRecord("x", 7), StreamRecord("y", 7)]


async def test_a_flattened_result_that_is_not_iterable_is_a_failure_of_the_element(async_wait: Any) -> None:
    function = Scripted({"a": Step(result=3), "b": Step(result=["x"])})
    with pytest.raises(TypeError, match="with flatten=True a result must be an iterable of outputs, got 3") as caught:
        await outputs(async_wait("ab", function, timeout=5.0, flatten=True))
    assert caught.value.__notes__ == ["element 0, 'a', attempt 1"]
    async with async_wait("ab", function, timeout=5.0, flatten=True, on_error="skip") as results:
        assert [result async for result in results] == ["x"]
    statistics = results.statistics()
    assert (statistics.completed, statistics.failed, statistics.skipped) == (1, 1, 1)


async def test_an_exception_raised_by_the_iterable_is_a_failure_of_the_element(async_wait: Any) -> None:
    error = TypeError("from the middle of the rows")

    def rows() -> Iterator[int]:
        yield 1
        raise error

    with pytest.raises(TypeError, match="from the middle") as caught:
        await outputs(async_wait(["a"], Scripted(default=Step(result=rows())), timeout=5.0, flatten=True))
    assert caught.value is error


async def test_the_results_of_on_timeout_and_on_error_are_flattened(async_wait: Any, autojump_clock: MockClock) -> None:
    async def on_error(value: str, exception: Exception) -> list[str]:
        return ["error", value]

    function = Scripted({"a": NEVER, "b": Step(error=OSError)})
    on_timeout = Scripted(default=Step(result=["late"]))
    operator = async_wait("ab", function, timeout=2.0, flatten=True, on_timeout=on_timeout, on_error=on_error)
    assert sorted(await outputs(operator)) == ["b", "error", "late"]
