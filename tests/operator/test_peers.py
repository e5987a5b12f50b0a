"""What goes wrong elsewhere: one test for each fault of a peer that could have been ours."""

from __future__ import annotations

import math
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.support import outputs
from trio_asyncio_io import (
    FixedDelay,
    Snapshot,
    StreamRecord,
    Watermark,
    keyed_wait,
    ordered_wait,
    unordered_wait,
)
from trio_asyncio_io.testing import Recorder, Scripted, Step

NEVER = Step(math.inf)


# Apache Flink.


async def test_a_timeout_cancels_the_request(async_wait: Any, autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted(default=NEVER))
    await outputs(async_wait(range(20), recorder, timeout=2.0, capacity=5, on_error="skip"))
    assert recorder.cancelled == 20
    assert {call.ended - call.started for call in recorder.calls if call.ended is not None} == {2.0}


async def test_leaving_cancels_the_requests(async_wait: Any, autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted(default=NEVER))
    async with async_wait(range(20), recorder, timeout=math.inf, capacity=5):
        await wait_all_tasks_blocked()
    assert (recorder.cancelled, recorder.running) == (5, 0)


async def test_finished_results_hold_no_slots(autojump_clock: MockClock) -> None:
    """One request of a hundred takes fifty times as long; ordered output reaches what Little's law allows."""
    function = Scripted({number: Step(50.0) for number in range(0, 2_000, 100)}, default=Step(1.0))
    async with ordered_wait(range(2_000), function, timeout=60.0, capacity=10) as results:
        assert [result async for result in results] == list(range(2_000))
    work = 20 * 50.0 + 1_980 * 1.0
    assert work / 10 <= trio.current_time() < 1.2 * work / 10


async def test_elements_that_retry_at_the_same_time_do_not_share_a_count(
    async_wait: Any, autojump_clock: MockClock
) -> None:
    recorder = Recorder(Scripted(default=Step(1.0, error=OSError)))
    await outputs(async_wait(range(8), recorder, timeout=60.0, retry=FixedDelay(2, 1.0), on_error="skip"))
    assert sorted(recorder.values) == sorted(list(range(8)) * 3)


async def test_max_retries_makes_no_call_more_than_it_says(async_wait: Any, autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted(default=Step(error=OSError)))
    await outputs(async_wait("a", recorder, timeout=60.0, retry=FixedDelay(3, 1.0), on_error="skip"))
    assert len(recorder.calls) == 4


async def test_a_snapshot_throws_no_finished_result_away_and_keeps_the_order_of_arrival(
    autojump_clock: MockClock,
) -> None:
    source = [StreamRecord(value, 0) for value in ("e", "d", "c", "b", "a")]
    function = Scripted({"e": NEVER, "d": Step(3.0)}, default=Step(1.0))
    async with unordered_wait(source, function, timeout=math.inf, capacity=5) as results:
        await trio.sleep(2.0)
        snapshot = results.snapshot()
    assert [(each.element.value, each.results) for each in snapshot.elements] == [
        ("e", None),
        ("d", None),
        ("c", ["c"]),
        ("b", ["b"]),
        ("a", ["a"]),
    ]


@pytest.mark.parametrize("delay", [0.0, 0.5, 1.0, 2.0])
async def test_timeout_and_retry_do_not_race(async_wait: Any, autojump_clock: MockClock, delay: float) -> None:
    """The deadline strikes in an attempt, in a backoff, and at the very end of either; each element ends once."""
    recorder = Recorder(Scripted(default=Step(1.0, error=OSError)))
    on_timeout = Recorder(Scripted(default=Step(result="late")))
    operator = async_wait(range(40), recorder, timeout=4.0, retry=FixedDelay(100, delay), on_timeout=on_timeout)
    async with operator as results:
        assert [result async for result in results] == ["late"] * 40
    assert len(on_timeout.calls) == results.statistics().timed_out == 40
    assert all(call.ended is not None and call.ended <= 4.0 for call in recorder.calls)


async def test_there_are_numbers_to_look_at(async_wait: Any, autojump_clock: MockClock) -> None:
    async with async_wait(range(10), Scripted(default=Step(1.0)), timeout=5.0, capacity=5) as results:
        await trio.sleep(0.5)
        assert (results.statistics().running, results.statistics().buffered) == (5, 10)
        assert len([result async for result in results]) == 10


# PyFlink.


async def test_timed_out_calls_are_not_in_flight_any_more(async_wait: Any, autojump_clock: MockClock) -> None:
    """There: capacity 10, and 60 calls in flight."""
    recorder = Recorder(Scripted(default=NEVER))
    await outputs(async_wait(range(60), recorder, timeout=1.0, capacity=10, on_error="skip"))
    assert recorder.peak_running == 10


async def test_nothing_drains_between_the_elements(async_wait: Any, autojump_clock: MockClock) -> None:
    """There: each bundle's end waits for its slowest call; in Pathway and in gather by hand, each batch's."""
    function = Scripted({number: Step(3.0) for number in range(0, 100, 10)}, default=Step(1.0))
    await outputs(async_wait(range(100), function, timeout=5.0, capacity=10))
    assert trio.current_time() == pytest.approx((10 * 3.0 + 90 * 1.0) / 10, abs=3.0)


async def test_a_deadline_costs_no_task_of_its_own(async_wait: Any, autojump_clock: MockClock) -> None:
    """There: a thread for each timer."""
    before = trio.lowlevel.current_statistics().tasks_living
    async with async_wait(range(300), Scripted(default=NEVER), timeout=60.0, capacity=10):
        await wait_all_tasks_blocked()
        assert trio.lowlevel.current_statistics().tasks_living - before <= 10 + 2


async def test_a_slow_consumer_does_not_freeze_the_requests(async_wait: Any, autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted(default=Step(1.0)))
    async with async_wait(range(100), recorder, timeout=5.0, capacity=10) as results:
        await results.receive()
        await trio.sleep(50.0)
        assert recorder.calls[-1].ended == 10.0


# Daft.


async def test_the_limit_counts_calls(async_wait: Any, autojump_clock: MockClock) -> None:
    """There: it counts batches, so 5,000 calls were in flight with a limit of 20."""
    recorder = Recorder(Scripted(default=Step(1.0)))
    await outputs(async_wait(range(5_000), recorder, timeout=5.0, capacity=20))
    assert recorder.peak_running == 20


async def test_one_bad_element_of_a_hundred_is_one_bad_element(async_wait: Any, autojump_clock: MockClock) -> None:
    """There: it nulls all hundred of its batch and makes three hundred calls."""
    recorder = Recorder(Scripted({7: Step(error=OSError)}))
    out = await outputs(async_wait(range(100), recorder, timeout=5.0, retry=FixedDelay(2, 0.5), on_error="skip"))
    assert sorted(out) == [number for number in range(100) if number != 7]
    assert len(recorder.calls) == 99 + 3


# Apache Beam, Ray Data, Pathway.


async def test_a_timeout_strikes_when_it_says(async_wait: Any, autojump_clock: MockClock) -> None:
    """There: a timeout of 0.5 s on a call of 3 s raised after 3 s."""
    with pytest.raises(trio.TooSlowError):
        await outputs(async_wait("a", Scripted(default=Step(3.0)), timeout=0.5))
    assert trio.current_time() == 0.5


async def test_more_than_one_request_runs_at_once(async_wait: Any, autojump_clock: MockClock) -> None:
    await outputs(async_wait(range(100), Scripted(default=Step(1.0)), timeout=5.0, capacity=100))
    assert trio.current_time() == 1.0


async def test_neither_the_input_nor_what_waits_for_its_turn_grows_without_bound(autojump_clock: MockClock) -> None:
    async with ordered_wait(iter(int, 1), Scripted(calls=[NEVER]), timeout=math.inf, capacity=2, buffer=50) as results:
        await trio.sleep(1_000.0)
        assert results.statistics().peak_buffered == 50
        assert len(results.snapshot()) == 50 + 1


# gather by hand, aiostream, streamable.


async def test_siblings_do_not_run_on_after_a_failure(async_wait: Any, autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted({0: Step(1.0, error=OSError("busy"))}, default=Step(5.0)))
    with pytest.raises(OSError, match="busy"):
        await outputs(async_wait(range(20), recorder, timeout=10.0))
    assert trio.current_time() == 1.0
    assert (recorder.cancelled, recorder.running) == (19, 0)


async def test_one_straggler_does_not_hold_the_others_back(autojump_clock: MockClock) -> None:
    function = Scripted({0: Step(100.0)}, default=Step(1.0))
    async with unordered_wait(range(500), function, timeout=200.0, capacity=50) as results:
        instants = [trio.current_time() async for _ in results]
    assert instants[-2] < 12.0
    assert instants[-1] == 100.0


# Pekko, fs2, Confluent Parallel Consumer.


async def test_what_is_in_flight_is_in_the_snapshot(async_wait: Any, autojump_clock: MockClock) -> None:
    async with async_wait(range(3), Scripted(default=NEVER), timeout=math.inf) as results:
        await wait_all_tasks_blocked()
        snapshot = results.snapshot()
    assert isinstance(snapshot, Snapshot)
    assert [each.element for each in snapshot.elements] == [0, 1, 2]


async def test_order_per_key_goes_together_with_watermarks(autojump_clock: MockClock) -> None:
    source = ["a1", "b1", "a2", Watermark(1), "a3", "b2"]
    function = Scripted({"a1": Step(3.0), "a2": Step(1.0), "b1": Step(2.0)})
    out = await outputs(keyed_wait(source, function, key=lambda value: value[0], timeout=5.0))
    assert out[:4] == ["b1", "a1", "a2", Watermark(1)]


# edanalytics/lightbeam#11.


async def test_the_timeouts_clock_starts_when_the_slot_is_granted(async_wait: Any, autojump_clock: MockClock) -> None:
    out = await outputs(async_wait(range(10), Scripted(default=Step(1.0)), timeout=1.5, capacity=1))
    assert len(out) == 10
    assert trio.current_time() == 10.0
