"""`ordered_wait`, `unordered_wait` and `keyed_wait`: values, order and arguments."""

from __future__ import annotations

from typing import Any

import pytest
from trio.testing import MockClock

from tests.support import outputs
from trio_asyncio_io import StreamRecord, Watermark, keyed_wait
from trio_asyncio_io.testing import Recorder, Scripted, Step


async def test_the_result_of_a_record_is_a_record_with_its_timestamp(async_wait: Any) -> None:
    recorder = Recorder(Scripted(default=Step(result="A")))
    assert await outputs(async_wait([StreamRecord("a", 7)], recorder, timeout=5.0)) == [StreamRecord("A", 7)]
    assert recorder.values == ["a"]


async def test_bare_values_records_and_watermarks_may_be_mixed(async_wait: Any) -> None:
    source = ["a", Watermark(1), StreamRecord("b", 2), Watermark(2), StreamRecord("c")]
    assert await outputs(async_wait(source, Scripted(), timeout=5.0)) == source


@pytest.mark.parametrize("value", [None, 0, "", (), False, float("inf")])
async def test_any_object_may_be_a_value_or_a_result(async_wait: Any, value: Any) -> None:
    assert await outputs(async_wait([value], Scripted(default=Step(result=value)), timeout=5.0)) == [value]


# Keys


async def test_the_wait_for_the_last_record_of_the_key_is_no_wait_for_a_slot(autojump_clock: MockClock) -> None:
    operator = keyed_wait(range(4), Scripted(default=Step(1.0)), key=lambda _: "key", timeout=5.0, capacity=10)
    async with operator as results:
        async for _ in results:
            pass
    numbers = results.statistics()
    assert (numbers.slot_wait_seconds, numbers.slot_wait.p99) == (0.0, 0.0)


# Arguments


async def test_keyed_wait_requires_key() -> None:
    with pytest.raises(TypeError, match="key"):
        keyed_wait([], Scripted(), timeout=5.0)  # type: ignore[call-arg]
