"""Flattened results: one element, any number of outputs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest
from trio.testing import MockClock

from trio_asyncio_io import StreamRecord, ordered_wait
from trio_asyncio_io.testing import Scripted, Step

NEVER = Step(math.inf)


async def outputs(operator: Any) -> list[Any]:
    async with operator as results:
        return [result async for result in results]


@pytest.mark.parametrize("as_iterable", [list, tuple, iter, set, lambda values: (value for value in values)])
async def test_a_flattened_result_is_any_number_of_outputs_side_by_side(
    autojump_clock: MockClock, as_iterable: Any
) -> None:
    function = Scripted({value: Step(3.0 - value, result=as_iterable(["x"] * value)) for value in range(3)})
    async with ordered_wait(range(3), function, timeout=5.0, flatten=True) as results:
        assert len([result async for result in results]) == (2 if as_iterable is set else 3)
    assert results.statistics().completed == 3


async def test_outputs_of_one_element_stay_side_by_side_in_every_mode(wait: Any, autojump_clock: MockClock) -> None:
    function = Scripted({value: Step(1.0 + value % 3, result=[value] * 30) for value in range(9)})
    out = await outputs(wait(range(9), function, timeout=5.0, flatten=True, capacity=4, buffer=4))
    groups = [out[start : start + 30] for start in range(0, len(out), 30)]
    assert sorted(groups) == [[value] * 30 for value in range(9)]


async def test_each_output_has_the_timestamp_of_its_record(wait: Any) -> None:
    function = Scripted(default=Step(result=["x", "y"]))
    out = await outputs(wait([StreamRecord("a", 7)], function, timeout=5.0, flatten=True))
    assert out == [StreamRecord("x", 7), StreamRecord("y", 7)]


async def test_a_flattened_result_that_is_no_iterable_is_an_error_of_the_element(wait: Any) -> None:
    function = Scripted({"a": Step(result=3), "b": Step(result=["x"])})
    with pytest.raises(TypeError, match="with flatten=True a result must be an iterable of outputs, got 3") as caught:
        await outputs(wait("ab", function, timeout=5.0, flatten=True))
    assert caught.value.__notes__ == ["element 0, 'a', attempt 1"]
    async with wait("ab", function, timeout=5.0, flatten=True, on_error="skip") as results:
        assert [result async for result in results] == ["x"]
    statistics = results.statistics()
    assert (statistics.completed, statistics.failed, statistics.skipped) == (1, 1, 1)


async def test_what_an_iterable_raises_while_it_is_flattened_is_an_error_of_the_element(wait: Any) -> None:
    error = TypeError("from the middle of the rows")

    def rows() -> Iterator[int]:
        yield 1
        raise error

    with pytest.raises(TypeError, match="from the middle") as caught:
        await outputs(wait(["a"], Scripted(default=Step(result=rows())), timeout=5.0, flatten=True))
    assert caught.value is error


async def test_the_results_of_on_timeout_and_on_error_are_flattened_too(wait: Any, autojump_clock: MockClock) -> None:
    async def on_error(value: str, exception: Exception) -> list[str]:
        return ["error", value]

    function = Scripted({"a": NEVER, "b": Step(error=OSError)})
    on_timeout = Scripted(default=Step(result=["late"]))
    operator = wait("ab", function, timeout=2.0, flatten=True, on_timeout=on_timeout, on_error=on_error)
    assert sorted(await outputs(operator)) == ["b", "error", "late"]
