"""`ordered_wait`, `unordered_wait` and `keyed_wait`: values, order and arguments."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.support import outputs
from trio_asyncio_io import StreamRecord, Watermark, keyed_wait
from trio_asyncio_io.testing import Recorder, Scripted, Step


async def test_the_result_of_a_bare_value_is_bare(async_wait: Any) -> None:
    assert await outputs(async_wait(["a"], Scripted(default=Step(result="A")), timeout=5.0)) == ["A"]


async def test_the_result_of_a_record_is_a_record_with_its_timestamp(async_wait: Any) -> None:
    recorder = Recorder(Scripted(default=Step(result="A")))
    assert await outputs(async_wait([StreamRecord("a", 7)], recorder, timeout=5.0)) == [StreamRecord("A", 7)]
    assert recorder.values == ["a"]


async def test_a_watermark_is_emitted_unchanged_without_a_call(async_wait: Any) -> None:
    watermark = Watermark(7)
    recorder = Recorder(Scripted())
    out = await outputs(async_wait([watermark], recorder, timeout=5.0))
    assert out[0] is watermark
    assert recorder.calls == []


async def test_bare_values_records_and_watermarks_may_be_mixed(async_wait: Any) -> None:
    source = ["a", Watermark(1), StreamRecord("b", 2), Watermark(2), StreamRecord("c")]
    assert await outputs(async_wait(source, Scripted(), timeout=5.0)) == source


@pytest.mark.parametrize("value", [None, 0, "", (), False, float("inf")])
async def test_any_object_may_be_a_value_or_a_result(async_wait: Any, value: Any) -> None:
    assert await outputs(async_wait([value], Scripted(default=Step(result=value)), timeout=5.0)) == [value]


async def test_an_empty_source_has_an_empty_output(async_wait: Any, autojump_clock: MockClock) -> None:
    async with async_wait([], Scripted(), timeout=5.0) as results:
        assert [result async for result in results] == []
    assert results.statistics().emitted == 0


# Keys


async def test_the_wait_for_the_last_record_of_the_key_is_no_wait_for_a_slot(autojump_clock: MockClock) -> None:
    operator = keyed_wait(range(4), Scripted(default=Step(1.0)), key=lambda _: "key", timeout=5.0, capacity=10)
    async with operator as results:
        async for _ in results:
            pass
    numbers = results.statistics()
    assert (numbers.slot_wait_seconds, numbers.slot_wait.p99) == (0.0, 0.0)


async def test_a_hot_key_does_not_delay_other_keys(autojump_clock: MockClock) -> None:
    source = [("hot", number) for number in range(50)] + [(f"cold {number}", number) for number in range(50)]
    recorder = Recorder(Scripted(default=Step(1.0)))
    async with keyed_wait(source, recorder, key=lambda value: value[0], timeout=5.0, capacity=11) as results:
        out = [(result, trio.current_time()) async for result in results]
    assert max(instant for (key, _), instant in out if key != "hot") == 5.0
    assert max(instant for (key, _), instant in out if key == "hot") == 50.0
    assert recorder.peak_running == 11


# Arguments


async def test_keyed_wait_requires_key() -> None:
    with pytest.raises(TypeError, match="key"):
        keyed_wait([], Scripted(), timeout=5.0)  # type: ignore[call-arg]
