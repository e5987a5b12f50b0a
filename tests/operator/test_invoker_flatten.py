"""`flatten=True`: any number of outputs per element."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support import outputs
from trio_asyncio_io.testing import Scripted, Step


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
