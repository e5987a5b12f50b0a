"""The option `group`: one call for several records, with exact instants."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from math import inf
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.plain_gates import AtMost
from tests.support import outputs
from trio_asyncio_io import (
    AsyncWaitOperator,
    AttemptTimeoutError,
    DeadLetter,
    ElementTimeoutError,
    ExponentialBackoff,
    FixedDelay,
    Options,
    Watermark,
    keyed_wait,
    ordered_wait,
    unordered_wait,
)
from trio_asyncio_io.gates import Auto, Gate, PerKey, RateLimit
from trio_asyncio_io.testing import Recorder

pytestmark = pytest.mark.usefixtures("no_cpu_time")


async def doubled(values: list[int]) -> list[int]:
    await trio.sleep(1.0)
    return [2 * value for value in values]


async def slept(seconds: int) -> int:
    await trio.sleep(seconds)
    return seconds


async def at(*arrivals: tuple[float, Any]) -> AsyncIterator[Any]:
    """The values at these instants."""
    for instant, value in arrivals:
        await trio.sleep_until(instant)
        yield value


def calls_of(recorder: Recorder[Any, Any]) -> list[tuple[float, list[Any]]]:
    return sorted((call.started, call.value) for call in recorder.calls)


# Forming a group


async def test_records_that_wait_already_share_calls(autojump_clock: MockClock) -> None:
    recorder = Recorder(doubled)
    assert await outputs(ordered_wait(range(7), recorder, group=3, capacity=1, timeout=5.0)) == list(range(0, 14, 2))
    assert calls_of(recorder) == [(0.0, [0, 1, 2]), (1.0, [3, 4, 5]), (2.0, [6])]


async def test_capacity_counts_calls_and_buffer_counts_records(autojump_clock: MockClock) -> None:
    recorder = Recorder(doubled)
    operator = AsyncWaitOperator(recorder, source=range(20), group=4, capacity=2, buffer=8, timeout=5.0)
    async with operator:
        assert [output async for output in operator.output] == list(range(0, 40, 2))
    assert [len(call.value) for call in recorder.calls] == [4] * 5
    assert (operator.statistics().peak_running, operator.statistics().peak_buffered) == (2, 8)


async def test_the_first_record_of_a_group_waits_group_wait_seconds_for_more(autojump_clock: MockClock) -> None:
    recorder = Recorder(doubled)
    source = at((0.0, 0), (0.25, 1), (0.75, 2), (9.0, 3))
    async with ordered_wait(source, recorder, group=5, group_wait=0.5, timeout=5.0) as results:
        assert [result async for result in results] == [0, 2, 4, 6]
    assert calls_of(recorder) == [(0.5, [0, 1]), (1.25, [2]), (9.0, [3])]
    assert results.statistics().group_wait_seconds == 0.5 + 0.25 + 0.5
    assert results.statistics().slot_wait_seconds == 0.0


async def test_a_full_group_starts_before_its_wait_is_over(autojump_clock: MockClock) -> None:
    recorder = Recorder(doubled)
    source = at((0.0, 0), (0.25, 1), (0.5, 2), (9.0, 3))
    async with ordered_wait(source, recorder, group=3, group_wait=60.0, timeout=5.0) as results:
        assert [result async for result in results] == [0, 2, 4, 6]
    assert calls_of(recorder) == [(0.5, [0, 1, 2]), (9.0, [3])]


async def test_watermarks_that_fill_the_buffer_end_the_wait_for_more_records(autojump_clock: MockClock) -> None:
    """Watermarks have the same limit as records, and none of them is emitted before the record has its result."""
    source = at((0.0, 1), *[(1.0, Watermark(instant)) for instant in range(4)], (1.0, 2))
    recorder = Recorder(doubled)
    out = await outputs(ordered_wait(source, recorder, group=3, group_wait=inf, buffer=3, capacity=2, timeout=5.0))
    assert [result for result in out if not isinstance(result, Watermark)] == [2, 4]
    assert calls_of(recorder) == [(1.0, [1]), (2.0, [2])]


async def test_watermarks_that_fill_the_buffer_wake_no_task_in_vain(autojump_clock: MockClock) -> None:
    """A worker that waits for an attempt and a feeder that waits for room do not wake each other without end."""
    source = [2, 1, *[Watermark(instant) for instant in range(5)]]
    results = ordered_wait(source, slept, capacity=2, buffer=4, timeout=5.0)
    assert [result for result in await outputs(results) if not isinstance(result, Watermark)] == [2, 1]


async def test_records_of_different_segments_share_a_call(autojump_clock: MockClock) -> None:
    recorder = Recorder(doubled)
    source = [1, Watermark(1), 2, Watermark(2), 3]
    out = await outputs(unordered_wait(source, recorder, group=3, timeout=5.0))
    assert out == [2, Watermark(1), 4, Watermark(2), 6]
    assert calls_of(recorder) == [(0.0, [1, 2, 3])]


async def test_two_records_of_one_key_never_share_a_call(autojump_clock: MockClock) -> None:
    recorder = Recorder(doubled)
    source = [10, 11, 20, 12, 21, 30]
    out = await outputs(keyed_wait(source, recorder, key=lambda value: value // 10, group=4, timeout=5.0))
    assert sorted(out) == [20, 22, 24, 40, 42, 60]
    assert calls_of(recorder) == [(0.0, [10, 20, 30]), (1.0, [11, 21]), (2.0, [12])]


async def test_the_wait_of_a_record_for_its_group_begins_when_its_key_is_free(autojump_clock: MockClock) -> None:
    recorder = Recorder(doubled)
    source = at((0.0, 10), (0.0, 11), (9.0, 12))
    async with keyed_wait(
        source, recorder, key=lambda value: value // 10, group=4, group_wait=0.5, timeout=5.0
    ) as results:
        assert [result async for result in results] == [20, 22, 24]
    assert calls_of(recorder) == [(0.5, [10]), (2.0, [11]), (9.0, [12])]
    numbers = results.statistics()
    assert (numbers.group_wait_seconds, numbers.slot_wait_seconds) == (1.0, 0.0)


# Results


@pytest.mark.parametrize(
    ("result", "kind", "text"),
    [
        ([1], ValueError, "got 1 result for 2 values"),
        ([1, 2, 3], ValueError, "got 3 results for 2 values"),
        ("ab", TypeError, "got 'ab' for 2 values"),
        (None, TypeError, "got None for 2 values"),
    ],
)
async def test_the_function_must_return_a_list_with_a_result_for_each_value(
    result: Any, kind: type[Exception], text: str, autojump_clock: MockClock
) -> None:
    async def wrong(values: list[int]) -> Any:
        return result

    with pytest.raises(kind, match=text):
        await outputs(ordered_wait([1, 2], wrong, group=2, timeout=5.0))


async def test_a_function_may_change_its_list(autojump_clock: MockClock) -> None:
    async def consume(values: list[int]) -> list[int]:
        results = []
        while values:
            results.append(10 * values.pop(0))
        if results[0] == 30 and len(calls) == 1:
            calls.append(results)
            raise OSError("busy")
        calls.append(results)
        return results

    calls: list[Any] = []
    options = {"group": 3, "timeout": 5.0, "capacity": 1, "retry": FixedDelay(1, 0.5)}
    async with ordered_wait(range(6), consume, **options) as results:
        assert [result async for result in results] == [0, 10, 20, 30, 40, 50]
    assert calls == [[0, 10, 20], [30, 40, 50], [30, 40, 50]]


@pytest.mark.parametrize("change", [lambda values: values.pop(), lambda values: values.append(9)])
async def test_the_results_are_compared_with_the_records_and_not_with_the_list(
    change: Any, autojump_clock: MockClock
) -> None:
    async def change_list(values: list[int]) -> list[int]:
        change(values)
        return values

    async with ordered_wait(range(3), change_list, group=3, timeout=5.0, on_error="skip") as results:
        assert [result async for result in results] == []
    assert results.statistics().failed == 3


async def test_an_exception_in_the_place_of_a_result_fails_that_record_alone(autojump_clock: MockClock) -> None:
    async def partly(values: list[int]) -> list[Any]:
        return [LookupError(value) if value % 2 else value for value in values]

    async with ordered_wait(range(4), partly, group=4, timeout=5.0, on_error="dead_letter") as results:
        assert [result async for result in results] == [0, 2]
        dead = [each async for each in results.dead_letters]
    assert [(each.element, each.error.args, each.attempts) for each in dead] == [(1, (1,), 1), (3, (3,), 1)]
    assert results.statistics().failed == 2


async def test_a_call_that_raises_fails_each_of_its_records(autojump_clock: MockClock) -> None:
    async def broken(values: list[int]) -> list[int]:
        raise LookupError("no service")

    async with ordered_wait(range(3), broken, group=3, timeout=5.0, on_error="dead_letter") as results:
        assert [result async for result in results] == []
        dead: list[DeadLetter] = [each async for each in results.dead_letters]
    assert [each.element for each in dead] == [0, 1, 2]
    assert len({id(each.error) for each in dead}) == 3


async def test_with_on_error_raise_the_exception_names_its_record(autojump_clock: MockClock) -> None:
    async def partly(values: list[int]) -> list[Any]:
        return [LookupError(value) if value == 2 else value for value in values]

    with pytest.raises(LookupError) as caught:
        await outputs(ordered_wait(range(4), partly, group=4, timeout=5.0))
    assert caught.value.__notes__ == ["element 2, 2, attempt 1"]


# Retries


async def test_records_of_a_call_that_raised_are_retried_in_one_call(autojump_clock: MockClock) -> None:
    """With jitter, too: the call draws one random number."""
    calls: list[tuple[float, list[int]]] = []

    async def flaky(values: list[int]) -> list[int]:
        calls.append((trio.current_time(), values))
        if len(calls) < 3:
            raise OSError
        return values

    retry = ExponentialBackoff(3, initial=1.0, maximum=60.0)
    async with ordered_wait(range(3), flaky, group=3, timeout=60.0, retry=retry) as results:
        assert [result async for result in results] == [0, 1, 2]
    assert [values for _, values in calls] == [[0, 1, 2]] * 3
    assert (results.statistics().retried, results.statistics().groups) == (6, 3)


async def test_a_new_record_never_shares_a_call_with_a_retry(autojump_clock: MockClock) -> None:
    recorder = Recorder(once_failing({0}))
    source = at((0.0, 0), (0.5, 1), (1.5, 2), (9.0, 3))
    out = await outputs(
        unordered_wait(source, recorder, group=2, group_wait=1.0, timeout=60.0, retry=FixedDelay(1, 0.5))
    )
    assert sorted(out) == [0, 1, 2, 3]
    # 0 and 1 share a call; the retry of 0 is due at 1.0, and does not wait; 2 waits from 1.5 to 2.5
    assert calls_of(recorder) == [(0.5, [0, 1]), (1.0, [0]), (2.5, [2]), (9.0, [3])]


def once_failing(numbers: set[int], error: type[Exception] = OSError) -> Callable[[list[int]], Awaitable[list[Any]]]:
    """The first results for these numbers are errors."""
    left = set(numbers)

    async def call(values: list[int]) -> list[Any]:
        out: list[Any] = [error(value) if value in left else value for value in values]
        left.difference_update(values)
        return out

    return call


def slow(function: Callable[[list[int]], Awaitable[list[Any]]]) -> Callable[[list[int]], Awaitable[list[Any]]]:
    async def call(values: list[int]) -> list[Any]:
        await trio.sleep(1.0)
        return await function(values)

    return call


async def test_a_result_can_be_retried(autojump_clock: MockClock) -> None:
    seen: list[list[int]] = []

    async def misses(values: list[int]) -> list[int | None]:
        seen.append(values)
        return [None if value == 1 and len(seen) < 3 else value for value in values]

    retry = FixedDelay(3, 1.0, retry_on_result=lambda result: result is None)
    assert await outputs(ordered_wait(range(3), misses, group=3, timeout=60.0, retry=retry)) == [0, 1, 2]
    assert seen == [[0, 1, 2], [1], [1]]


async def test_an_attempt_timeout_fails_the_attempts_of_all_records(autojump_clock: MockClock) -> None:
    calls: list[tuple[float, list[int]]] = []

    async def hangs(values: list[int]) -> list[int]:
        calls.append((trio.current_time(), values))
        await trio.sleep(10.0 if len(calls) == 1 else 0.0)
        return values

    retry = FixedDelay(1, 1.0, retry_on=(ZeroDivisionError,), attempt_timeout=2.0)
    assert await outputs(ordered_wait(range(3), hangs, group=3, timeout=60.0, retry=retry)) == [0, 1, 2]
    assert calls == [(0.0, [0, 1, 2]), (3.0, [0, 1, 2])]
    with pytest.raises(AttemptTimeoutError):
        await outputs(ordered_wait([0], sleeping, group=3, timeout=60.0, retry=FixedDelay(0, 1.0, attempt_timeout=2.0)))


async def sleeping(values: list[int]) -> list[int]:
    await trio.sleep_forever()
    return values


# Deadlines


async def test_when_a_call_times_out_each_of_its_records_does(autojump_clock: MockClock) -> None:
    handled: list[tuple[float, int]] = []

    async def late(value: int) -> int:
        handled.append((trio.current_time(), value))
        await trio.sleep(1.0)
        return -value

    async with ordered_wait(range(3), sleeping, group=3, timeout=5.0, on_timeout=late) as results:
        assert [result async for result in results] == [0, -1, -2]
    assert handled == [(5.0, 0), (6.0, 1), (7.0, 2)]  # one after another, in the slot of the call
    assert results.statistics().timed_out == 3
    with pytest.raises(ElementTimeoutError, match="for 0 within its timeout of 5 s"):
        await outputs(ordered_wait(range(3), sleeping, group=3, timeout=5.0))


async def test_waiting_for_a_group_is_not_part_of_the_timeout(autojump_clock: MockClock) -> None:
    source = at((0.0, 1), (9.0, 2))
    assert await outputs(ordered_wait(source, doubled, group=3, group_wait=60.0, timeout=1.5)) == [2, 4]


def noted_in(ends: list[Any]) -> Callable[..., Awaitable[None]]:
    async def handler(value: Any, error: Exception) -> None:
        ends.append((trio.current_time(), value, type(error)))

    return handler


@pytest.mark.parametrize("group_wait", [0.05, 60.0, inf])
async def test_retries_do_not_wait_for_more_records(group_wait: float, autojump_clock: MockClock) -> None:
    recorder = Recorder(slow(once_failing({1, 3})))
    source = at(*[(0.0, value) for value in range(5)], (1e6, 5))
    options = {"group": 5, "group_wait": group_wait, "timeout": 5.0, "retry": FixedDelay(1, 0.5)}
    async with ordered_wait(source, recorder, **options) as results:
        assert [await results.receive() for _ in range(5)] == list(range(5))
        assert trio.current_time() == 2.5
    assert calls_of(recorder) == [(0.0, [0, 1, 2, 3, 4]), (1.5, [1, 3])]


async def test_a_record_that_has_time_left_when_its_call_times_out_is_called_again(autojump_clock: MockClock) -> None:
    calls: list[tuple[float, list[str]]] = []

    async def function(values: list[str]) -> list[str]:
        is_first = all(value not in called for _, called in calls for value in values)
        calls.append((trio.current_time(), values))
        if is_first:
            await trio.sleep({"a": 4.0, "b": 0.125}[values[0]])
            raise OSError
        await trio.sleep(3.0)
        return values

    ends: list[Any] = []
    async with unordered_wait(
        at((0.0, "a"), (3.875, "b")),
        function,
        group=2,
        group_wait=0.0,
        timeout=6.0,
        retry=FixedDelay(3, 0.5, retry_on=OSError),
        on_error=noted_in(ends),
    ) as results:
        assert [(result, trio.current_time()) async for result in results] == [(None, 6.0), ("b", 9.5)]
    assert calls == [(0.0, ["a"]), (3.875, ["b"]), (4.5, ["a", "b"]), (6.5, ["b"])]
    assert ends == [(6.0, "a", ElementTimeoutError)]
    statistics = results.statistics()
    assert (statistics.timed_out, statistics.failed, statistics.retried) == (1, 0, 3)
    assert statistics.running == 0


async def test_a_retry_that_would_begin_too_late_times_out_alone(autojump_clock: MockClock) -> None:
    function = slow(once_failing({1}))
    async with ordered_wait(
        range(3), function, group=3, timeout=5.0, retry=FixedDelay(1, 60.0), on_error="skip"
    ) as results:
        assert [result async for result in results] == [0, 2]
    assert trio.current_time() == 1.0
    assert results.statistics().timed_out == 1


# Gates


class Watched(Gate):
    """Admits a call every `interval` seconds; records starts and ends."""

    def __init__(self, interval: float = 0.0, weight: Any = None) -> None:
        self.interval, self.weight = interval, weight
        self.free_at = 0.0
        self.starts: list[tuple[float, float]] = []
        self.ends: list[tuple[str, float]] = []

    def delay(self, now: float, weight: float) -> float:
        return max(0.0, self.free_at - now)

    def started(self, now: float, weight: float) -> None:
        self.starts.append((now, weight))
        self.free_at = now + self.interval

    def ended(self, now: float, seconds: float, outcome: Any, weight: float) -> None:
        self.ends.append((outcome.kind, weight))


async def test_a_gate_sees_one_call_with_the_sum_of_the_weights(autojump_clock: MockClock) -> None:
    gate = Watched(weight=float)
    assert await outputs(ordered_wait([1, 2, 3, 4], doubled, group=3, timeout=5.0, gate=gate)) == [2, 4, 6, 8]
    assert sorted(gate.starts) == [(0.0, 4.0), (0.0, 6.0)]
    assert sorted(gate.ends) == [("ok", 4.0), ("ok", 6.0)]


async def test_without_a_weight_a_call_counts_once(autojump_clock: MockClock) -> None:
    gate = Watched()
    assert await outputs(ordered_wait(range(4), doubled, group=4, timeout=5.0, gate=gate)) == [0, 2, 4, 6]
    assert gate.starts == [(0.0, 1.0)]


async def test_groups_become_larger_while_a_gate_holds_back_a_call(autojump_clock: MockClock) -> None:
    recorder = Recorder(doubled)
    source = at(*((number * 0.25, number) for number in range(12)))
    async with ordered_wait(
        source, recorder, group=5, group_wait=0.0, timeout=5.0, gate=Watched(interval=1.0)
    ) as results:
        assert [result async for result in results] == list(range(0, 24, 2))
    assert [len(values) for _, values in calls_of(recorder)] == [1, 1, 3, 4, 3]
    numbers = results.statistics()
    assert numbers.gate_wait_seconds > 0


async def test_with_gates_per_key_a_group_has_records_of_one_key(autojump_clock: MockClock) -> None:
    recorder = Recorder(doubled)
    gate = PerKey(RateLimit(0.5), key=lambda value: value // 10)
    out = await outputs(ordered_wait([10, 20, 11, 21, 12, 22], recorder, group=2, timeout=5.0, gate=gate))
    assert out == [20, 40, 22, 42, 24, 44]
    assert calls_of(recorder) == [(0.0, [10, 11]), (0.0, [20, 21]), (2.0, [12]), (2.0, [22])]


async def test_records_of_a_key_share_a_call_however_many_other_keys_have_come(autojump_clock: MockClock) -> None:
    """The operator drops the gates of keys that it no longer uses."""
    recorder = Recorder(doubled)
    gate = PerKey(RateLimit(1.0), key=abs)
    source = [500, *range(500), -500]
    out = await outputs(ordered_wait(source, recorder, group=2, group_wait=1.0, timeout=5.0, gate=gate))
    assert out == [2 * value for value in source]
    assert (0.0, [500, -500]) in calls_of(recorder)


async def test_a_group_starts_when_another_operator_frees_its_key(autojump_clock: MockClock) -> None:
    """The keys become free one after another, while the workers that the first ones have woken start."""
    gate = PerKey(AtMost(1), key=abs)

    async def ends_in_turn(value: int) -> None:
        await trio.sleep(1.0)
        for _ in range(value):
            await trio.lowlevel.checkpoint()

    recorder = Recorder(doubled)
    with trio.fail_after(9.0):
        async with AsyncWaitOperator(ends_in_turn, source=range(30), timeout=5.0, gate=gate):
            await trio.sleep(0.5)
            out = await outputs(ordered_wait(range(30), recorder, group=1, timeout=5.0, gate=gate))
    assert out == list(range(0, 60, 2))
    assert {started for started, _ in calls_of(recorder)} == {1.0}


# Account


async def test_the_times_of_a_record_sum_up(autojump_clock: MockClock) -> None:
    source = at((0.0, 0), (0.25, 1), (0.5, 2), (4.0, 3))
    async with ordered_wait(
        source, slow(once_failing({0})), group=2, group_wait=0.5, capacity=1, timeout=9.0, retry=FixedDelay(1, 0.25)
    ) as results:
        received = [(trio.current_time(), result) async for result in results]
    numbers = results.statistics()
    accepted = {0: 0.0, 1: 0.25, 2: 0.5, 3: 4.0}
    total = sum(instant - accepted[number] for instant, number in received)
    parts = numbers.group_wait_seconds + numbers.slot_wait_seconds + numbers.latency_seconds + numbers.head_wait_seconds
    assert parts == total


async def test_explain_counts_a_call_once(autojump_clock: MockClock) -> None:
    async with ordered_wait(range(400), doubled, group=10, capacity=2, timeout=5.0) as results:
        assert len([result async for result in results]) == 400
    verdict = results.explain()
    assert verdict.limit == "capacity"
    assert verdict.sentences[:3] == (
        "40 calls for 400 records in 20 s: 20 records a second, with a mean latency of 1 s.",
        "The capacity of 2 allows 20 records a second at this latency; 2.0 of 2 slots were busy on average (100%).",
        "On average, a call had 10 of at most 10 records, and each waited 0 s for its group to be complete.",
    )


# Snapshots and the end


@pytest.mark.parametrize("is_retried", [False, True])
async def test_an_interrupt_in_a_predicate_cancels_only_the_records_that_have_not_ended(
    autojump_clock: MockClock, is_retried: bool
) -> None:
    def retry_on_result(result: int) -> bool:
        if result == 2:
            raise KeyboardInterrupt
        return is_retried

    retry = FixedDelay(3, 1.0, retry_on_result=retry_on_result)
    operator = AsyncWaitOperator(doubled, source=range(3), group=3, timeout=inf, retry=retry)
    with pytest.raises(KeyboardInterrupt):
        async with operator:
            await trio.sleep_forever()
    numbers = operator.statistics()
    assert (numbers.completed, numbers.cancelled, numbers.running) == ((0, 3, 0) if is_retried else (1, 2, 0))
    assert len(operator.snapshot().elements) == 3


# Options


@pytest.mark.parametrize(
    ("options", "kind", "text"),
    [
        ({"group": 0}, ValueError, "group must be at least 1, got 0"),
        ({"group": 2.5}, TypeError, "group must be"),
        ({"group": 2, "group_wait": -1.0}, ValueError, "group_wait must be"),
        ({"group": 20, "capacity": 2, "buffer": 10}, ValueError, "buffer must be at least the size of a group"),
    ],
)
def test_invalid_options_are_named(options: dict[str, Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        Options(1.0, **options)


def test_the_default_buffer_is_a_hundred_times_the_records_that_run_at_once() -> None:
    assert Options(1.0, capacity=5, group=10).buffer == 5_000
    assert Options(1.0, capacity=100, group=5_000).buffer == 500_000


class BusyError(Exception):
    """A response that requests a wait longer than the `give_up` of a gate."""

    retry_after = 1000.0


async def test_an_exception_among_the_results_waits_as_long_as_its_service_requests(autojump_clock: MockClock) -> None:
    """The gates get the end of the call, and not of its records, so none would give up before."""
    started: list[float] = []

    async def busy_first(values: list[int]) -> list[Any]:
        started.append(trio.current_time())
        return [BusyError() if len(started) == 1 else value for value in values]

    options: Any = {"timeout": inf, "gate": Auto(2, 3), "retry": FixedDelay(1, 1.0)}
    async with unordered_wait(range(2), busy_first, group=2, **options) as results:
        assert [result async for result in results] == [0, 1]
    assert started == [0.0, 1000.0]
