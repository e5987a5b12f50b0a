"""`ordered_wait`, `unordered_wait` and `keyed_wait`: values, order and arguments."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.support import outputs
from trio_asyncio_io import StreamRecord, Watermark, keyed_wait, ordered_wait, unordered_wait
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


async def test_each_element_is_emitted_once(async_wait: Any, autojump_clock: MockClock) -> None:
    function = Scripted({value: Step(value * 13 % 17 / 4) for value in range(1_000)})
    async with async_wait(range(1_000), function, timeout=30.0, capacity=50) as results:
        out = [result async for result in results]
    assert sorted(out) == list(range(1_000))
    statistics = results.statistics()
    assert (statistics.completed, statistics.emitted, statistics.peak_running) == (1_000, 1_000, 50)


async def test_ordered_output_is_in_input_order(autojump_clock: MockClock) -> None:
    function = Scripted({value: Step(value * 13 % 17 / 4) for value in range(100)})
    assert await outputs(ordered_wait(range(100), function, timeout=30.0, capacity=7)) == list(range(100))


async def test_unordered_output_is_in_completion_order(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted({value: Step((value * 37 % 101) / 4) for value in range(100)}))
    out = await outputs(unordered_wait(range(100), recorder, timeout=60.0))
    ended = {call.value: call.ended for call in recorder.calls}
    assert out == sorted(out, key=lambda value: ended[value])


# Keys


def of_each_key(values: list[tuple[str, int]]) -> dict[str, list[int]]:
    numbers = defaultdict(list)
    for key, number in values:
        numbers[key].append(number)
    return numbers


KEYED = [("abc"[number * 7 % 11 % 3], number) for number in range(90)]
LATENCIES = {value: Step(value[1] * 13 % 17 / 4) for value in KEYED}


async def test_keyed_output_is_in_input_order_per_key(autojump_clock: MockClock) -> None:
    out = await outputs(keyed_wait(KEYED, Scripted(LATENCIES), key=lambda value: value[0], timeout=30.0, capacity=9))
    assert out != KEYED
    assert of_each_key(out) == of_each_key(KEYED)


async def test_two_records_of_one_key_never_run_at_once(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted(LATENCIES))
    await outputs(keyed_wait(KEYED, recorder, key=lambda value: value[0], timeout=30.0, capacity=9))
    assert recorder.peak_running == 3
    for key in "abc":
        calls = [call for call in recorder.calls if call.value[0] == key]
        assert all(before.ended <= after.started for before, after in pairwise(calls))


@pytest.mark.parametrize("step", [Step(10.0), Step(1.0, error=OSError)], ids=["times out", "fails"])
async def test_the_next_record_of_a_key_waits_for_retries_and_handlers_of_the_last(
    autojump_clock: MockClock, step: Step
) -> None:
    async def handler(*arguments: Any) -> str:
        await trio.sleep(1.5)
        return "handled"

    recorder = Recorder(Scripted({"a1": step}))
    source = ["a1", "a2", "b1"]
    operator = keyed_wait(
        source, recorder, key=lambda value: value[0], timeout=2.0, on_timeout=handler, on_error=handler
    )
    assert await outputs(operator) == ["b1", "handled", "a2"]
    began = {call.value: call.started for call in recorder.calls}
    assert began == {"a1": 0.0, "b1": 0.0, "a2": 3.5 if step.error is None else 2.5}


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


async def test_a_record_that_waits_for_its_key_uses_no_slot(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted(default=Step(1.0)))
    async with keyed_wait(["a", "a", "a", "b"], recorder, key=str, timeout=5.0, capacity=2) as results:
        await trio.sleep(0.5)
        assert results.statistics().running == 2
        assert [call.value for call in recorder.calls] == ["a", "b"]


async def test_no_record_of_any_key_crosses_a_watermark(autojump_clock: MockClock) -> None:
    source = ["a1", "a2", "b1", Watermark(1), "c1", "a3", Watermark(2), "b2"]
    function = Scripted({"a1": Step(2.0), "b1": Step(3.0)}, default=Step(0.5))
    out = await outputs(keyed_wait(source, function, key=lambda value: value[0], timeout=5.0))
    assert out == ["a1", "a2", "b1", Watermark(1), "c1", "a3", Watermark(2), "b2"]


# Arguments


async def test_only_source_and_function_are_positional(async_wait: Any) -> None:
    with pytest.raises(TypeError):
        async_wait([], Scripted(), 5.0)


@pytest.mark.parametrize("function", [None, 3, "fetch", trio.Event])
async def test_a_function_that_is_not_callable_is_refused_immediately(async_wait: Any, function: Any) -> None:
    with pytest.raises(TypeError, match="the function must be an async callable or an AsyncFunction, got"):
        async_wait([], function, timeout=5.0)


async def test_keyed_wait_requires_key() -> None:
    with pytest.raises(TypeError, match="key"):
        keyed_wait([], Scripted(), timeout=5.0)  # type: ignore[call-arg]


async def test_a_long_stream_of_an_async_source_flows_through_small_limits(
    async_wait: Any, autojump_clock: MockClock
) -> None:
    async def source() -> AsyncIterator[Any]:
        for number in range(400):
            if number % 7 == 0:
                await trio.sleep(0.5)
            yield Watermark(number) if number % 10 == 9 else StreamRecord(number, number)

    function = Scripted({number: Step(number * 13 % 17 / 4) for number in range(400)})
    async with async_wait(source(), function, timeout=30.0, capacity=3, buffer=5) as results:
        out = [result async for result in results]
    assert sorted(each.timestamp for each in out) == list(range(400))
    for position, each in enumerate(out):
        if isinstance(each, Watermark):
            assert position == each.timestamp
