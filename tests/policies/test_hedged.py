"""hedged: when a second call is made, and which result counts."""

from __future__ import annotations

import gc
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from math import inf
from typing import Any, cast
from weakref import WeakSet, ref

import pytest
import trio
from trio.testing import MockClock

from tests.plain_gates import AtMost, Listener
from tests.support import outputs
from trio_asyncio_io import AsyncWaitOperator, FixedDelay, NotAsyncError, Statistics, Totals, unordered_wait
from trio_asyncio_io.gates import CircuitBreaker, RateLimit, RefusedError, settle
from trio_asyncio_io.policies import hedged, single_flight
from trio_asyncio_io.progress import summary
from trio_asyncio_io.testing import Recorder, Scripted, Step

NothingLeft = Callable[[], AbstractContextManager[None]]

SLOW_THEN_FAST = [Step(5.0, "first"), Step(1.0, "second")]


def scripted(*steps: Step, after: float | str = 2.0, budget: float = 1.0) -> tuple[Any, Recorder]:
    """A hedged function with these steps, and its recorder."""
    recorder = Recorder(Scripted({"a": list(steps)}))
    return hedged(recorder, after=after, budget=budget), recorder


def starts(recorder: Recorder) -> list[float]:
    return [call.started for call in recorder.calls]


async def test_the_second_call_starts_when_the_first_is_slow_and_its_result_counts(autojump_clock: MockClock) -> None:
    function, recorder = scripted(*SLOW_THEN_FAST)
    assert await function("a") == "second"
    assert trio.current_time() == 3.0
    assert starts(recorder) == [0.0, 2.0]
    assert recorder.cancelled == 1
    assert (function.calls, function.extra_calls, function.won) == (2, 1, 1)


async def test_the_first_call_may_still_win(autojump_clock: MockClock) -> None:
    function, recorder = scripted(Step(5.0, "first"), Step(9.0, "second"))
    assert await function("a") == "first"
    assert trio.current_time() == 5.0
    assert (recorder.cancelled, function.extra_calls, function.won) == (1, 1, 0)


async def test_the_result_counts_when_the_loser_has_unwound(autojump_clock: MockClock) -> None:
    async def call(value: list[int]) -> str:
        value.append(1)
        if len(value) == 2:
            return "second"
        try:
            await trio.sleep(100)
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(7)
        return "first"

    assert await hedged(call, after=2.0, budget=1.0)([]) == "second"
    assert trio.current_time() == 9.0


async def test_if_the_first_call_fails_the_second_starts_at_once(autojump_clock: MockClock) -> None:
    function, recorder = scripted(Step(1.0, error=OSError("first")), Step(1.0, "second"))
    assert await function("a") == "second"
    assert starts(recorder) == [0.0, 1.0]


async def test_if_the_second_call_fails_the_first_one_counts(autojump_clock: MockClock) -> None:
    function, _ = scripted(Step(5.0, "first"), Step(1.0, error=OSError("second")))
    assert await function("a") == "first"


async def test_if_all_calls_fail_the_exception_of_the_first_is_raised(autojump_clock: MockClock) -> None:
    function, _ = scripted(Step(5.0, error=OSError("first")), Step(1.0, error=OSError("second")))
    with pytest.raises(OSError, match="first"):
        await function("a")
    assert trio.current_time() == 5.0


async def test_each_extra_call_takes_one_from_the_budget(autojump_clock: MockClock) -> None:
    function = hedged(Scripted(default=Step(5.0)), after=2.0, budget=0.25)
    for _ in range(12):
        await function("a")
    assert function.extra_calls == 3


async def test_at_most_ten_extra_calls_are_saved(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted({"fast": Step(1.0)}, default=Step(5.0)))
    function = hedged(recorder, after=2.0, budget=0.1)
    for _ in range(300):
        await function("fast")
    async with trio.open_nursery() as nursery:
        for _ in range(50):
            nursery.start_soon(function, "slow")
    assert function.extra_calls == 10


@pytest.mark.parametrize(("seconds", "instants"), [(1.0, [0.0, 1.0]), (0.001, [0.0, 0.01])])
async def test_after_a_percentile_of_fifty_calls_or_ten_milliseconds(
    seconds: float, instants: list[float], autojump_clock: MockClock
) -> None:
    steps = [Step(seconds)] * 45 + [Step(9.0)] * 5
    recorder = Recorder(Scripted({"a": [*steps, Step(50.0), Step(seconds)]}))
    function = hedged(recorder, after="p90", budget=1.0)
    for _ in range(50):
        await function("a")
    assert function.extra_calls == 0
    began = trio.current_time()
    await function("a")
    assert [start - began for start in starts(recorder)[50:]] == pytest.approx(instants)


async def test_no_extra_call_if_all_calls_take_equally_long(autojump_clock: MockClock) -> None:
    """A call that takes as long as the percentile is not slow."""
    recorder = Recorder(Scripted(default=Step(0.1)))
    function = hedged(recorder, budget=1.0)
    await outputs(unordered_wait(range(500), function, timeout=5.0, capacity=10))
    assert (function.calls, function.extra_calls) == (500, 0)


async def test_alarms_of_calls_that_have_ended_do_not_pile_up(autojump_clock: MockClock) -> None:
    function = hedged(Scripted(default=Step(0.1)), after=1_000.0)
    for _ in range(100):
        await function("a")
    assert len(function._alarms._heap) == 1


async def test_no_extra_call_in_the_last_quarter_of_the_deadline(autojump_clock: MockClock) -> None:
    for timeout, calls in ((2.5, 1), (2.8, 2)):
        function, recorder = scripted(*SLOW_THEN_FAST)
        await outputs(unordered_wait("a", function, timeout=timeout, on_error="skip"))
        assert len(recorder.calls) == calls


async def test_an_attempt_timeout_is_a_deadline_too(autojump_clock: MockClock) -> None:
    function, recorder = scripted(*SLOW_THEN_FAST)
    retry = FixedDelay(0, 0.0, attempt_timeout=2.5)
    await outputs(unordered_wait("a", function, timeout=99.0, retry=retry, on_error="skip"))
    assert len(recorder.calls) == 1


class ThrottledError(Exception):
    status = 429


async def test_no_extra_call_within_ten_seconds_of_a_throttle(autojump_clock: MockClock) -> None:
    function, recorder = scripted(Step(1.0, error=ThrottledError), *[Step(8.5)] * 3)
    with pytest.raises(ThrottledError):
        await function("a")
    await function("a")  # a second call would start at 3
    await function("a")  # and here it starts at 11.5
    assert starts(recorder) == [0.0, 1.0, 9.5, 11.5]


async def test_no_extra_call_unless_the_gates_admit_it_at_once(autojump_clock: MockClock) -> None:
    function, recorder = scripted(*SLOW_THEN_FAST)
    assert await outputs(unordered_wait("a", function, timeout=99.0, gate=AtMost(1))) == ["first"]
    assert len(recorder.calls) == 1


async def test_no_extra_call_while_another_record_waits_for_a_gate(autojump_clock: MockClock) -> None:
    function, recorder = scripted(*SLOW_THEN_FAST)
    weights = {"a": 1.0, "b": 9.0}
    gate = RateLimit(1.0, burst=3.0, weight=weights.__getitem__)  # "b" waits until 1.0 for a full bucket
    recorder = Recorder(Scripted(default=Step(5.0)))
    function = hedged(recorder, after=0.5, budget=1.0)
    await outputs(unordered_wait("ab", function, timeout=99.0, gate=gate))
    assert starts(recorder) == [0.0, 1.0]


async def test_gates_hear_of_each_call(autojump_clock: MockClock) -> None:
    gate = Listener(weight=lambda value: 4.0)
    function, _ = scripted(*SLOW_THEN_FAST)
    await outputs(unordered_wait("a", function, timeout=99.0, gate=gate))
    started = [("started", 0.0, 4.0), ("started", 2.0, 4.0)]
    assert gate.heard == [*started, ("ok", 3.0, 1.0, 4.0), ("cancelled", 3.0, 3.0, 4.0)]


async def test_gates_hear_of_a_first_call_whose_failure_is_hidden(autojump_clock: MockClock) -> None:
    for retry in (None, FixedDelay(1, 1.0)):
        gate = Listener(weight=lambda value: 4.0)
        function, _ = scripted(Step(3.0, error=ThrottledError()), Step(2.0, "second"))
        async with unordered_wait("a", function, timeout=99.0, gate=gate, retry=retry) as results:
            assert [result async for result in results] == ["second"]
        assert [each[0] for each in gate.heard] == ["started", "started", "ok", "throttled"]
        assert results.statistics().throttled == 1


async def test_a_hidden_failure_wakes_an_idle_gate(autojump_clock: MockClock) -> None:
    gate = CircuitBreaker(calls=1)
    function, _ = scripted(Step(3.0, error=ConnectionError()), Step(2.0, "second"))
    assert await outputs(unordered_wait("a", function, timeout=99.0, gate=gate)) == ["second"]
    assert not gate.is_closed


async def test_gates_hear_of_an_extra_call_that_failed_or_lost(autojump_clock: MockClock) -> None:
    for second, kind in ((Step(1.0, error=ConnectionError), "overload"), (Step(9.0), "cancelled")):
        gate = Listener(weight=lambda value: 4.0)
        function, _ = scripted(Step(5.0), second)
        async with unordered_wait("a", function, timeout=99.0, gate=gate) as results:
            assert [result async for result in results] == ["a"]
        assert [each[0] for each in gate.heard] == ["started", "started", kind, "ok"]


async def test_each_call_settles_its_own_weight(autojump_clock: MockClock) -> None:
    gate = Listener(weight=lambda value: 4.0)
    calls: list[int] = []

    async def call(value: str) -> None:
        calls.append(1)
        number = len(calls)
        await trio.sleep(1.0)
        settle(10.0 * number)
        await trio.sleep(5.0 if number == 1 else 1.0)

    await outputs(unordered_wait("a", hedged(call, after=0.5, budget=1.0), timeout=99.0, gate=gate))
    assert gate.settled == [(4.0, 10.0), (4.0, 20.0)]
    assert gate.ends == [("ok", 2.5, 2.0, 20.0), ("cancelled", 2.5, 2.5, 10.0)]


class RefusesSecond(AtMost):
    """Refuses each call from the second one on."""

    def delay(self, now: float, weight: float) -> float:
        if self.running:
            raise RefusedError
        return 0.0


async def test_a_gate_that_refuses_an_extra_call_does_not_fail_the_element(autojump_clock: MockClock) -> None:
    function, recorder = scripted(*SLOW_THEN_FAST)
    assert await outputs(unordered_wait("a", function, timeout=99.0, gate=RefusesSecond(1))) == ["first"]
    assert len(recorder.calls) == 1


def hedges_of(numbers: Statistics | Totals) -> tuple[int, int]:
    return numbers.hedged, numbers.hedges_won


async def test_the_operator_counts_extra_calls_and_those_that_won(autojump_clock: MockClock) -> None:
    """Of four elements, one is fast, one has an extra call that wins, one has one that loses, and one times out."""
    steps = {"a": [Step(1.0)], "b": [Step(9.0), Step(1.0)], "c": [Step(5.0), Step(9.0)], "d": [Step(inf), Step(inf)]}
    function = hedged(Scripted(steps), after=2.0, budget=2.0)
    async with AsyncWaitOperator(function, source="abcd", timeout=20.0, on_error="skip") as operator:
        assert [result async for result in operator.output] == ["a", "b", "c"]
    assert hedges_of(operator.statistics()) == hedges_of(operator.totals()) == (3, 1)
    assert (function.extra_calls, function.won) == (3, 1)
    assert summary(operator.statistics(), 20.0).endswith(", 1 timed out, hedged 75.0% (won 33%)")


@pytest.mark.parametrize("depth", [1, 2])
async def test_a_shared_call_counts_for_the_operator_whose_element_started_it(
    depth: int, autojump_clock: MockClock
) -> None:
    function, recorder = scripted(*SLOW_THEN_FAST)
    shared: Any = function
    for _ in range(depth):
        shared = single_flight(shared)
    async with AsyncWaitOperator(shared, timeout=99.0) as first, AsyncWaitOperator(shared, timeout=99.0) as second:
        await first.put("a")
        await trio.sleep(1.0)
        await second.put("a")
        assert [await first.output.receive(), await second.output.receive()] == ["second", "second"]
    assert len(recorder.calls) == 2
    assert (hedges_of(first.statistics()), hedges_of(second.statistics())) == ((1, 1), (0, 0))


async def test_an_extra_call_counts_for_the_innermost_operator(autojump_clock: MockClock) -> None:
    function, _ = scripted(*SLOW_THEN_FAST)
    inner = unordered_wait("a", function, timeout=99.0)

    async def call(_: str) -> Statistics:
        async with inner as results:
            assert [result async for result in results] == ["second"]
        return results.statistics()

    async with unordered_wait("x", call, timeout=99.0) as results:
        assert [hedges_of(numbers) async for numbers in results] == [(1, 1)]
    assert hedges_of(results.statistics()) == (0, 0)


async def test_cancellation_ends_all_calls(autojump_clock: MockClock, nothing_left: NothingLeft) -> None:
    function, recorder = scripted(Step(50.0), Step(50.0))
    with nothing_left():
        with trio.move_on_after(3.0) as scope:
            await function("a")
    assert scope.cancelled_caught
    assert (trio.current_time(), recorder.cancelled) == (3.0, 2)


async def test_no_extra_call_starts_while_a_cancelled_one_unwinds(autojump_clock: MockClock) -> None:
    calls = []

    async def stubborn(value: str) -> None:
        calls.append(value)
        with trio.CancelScope(shield=True):
            await trio.sleep(5.0)
        await trio.lowlevel.checkpoint()

    function = hedged(stubborn, after=2.0, budget=1.0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(function, "a")
        await trio.sleep(1.0)
        nursery.cancel_scope.cancel()
    assert (calls, function.extra_calls) == (["a"], 0)


async def test_a_call_that_has_ended_leaves_nothing_behind(
    autojump_clock: MockClock, nothing_left: NothingLeft
) -> None:
    """Until the instant at which its second call would have started, the policy has a task."""

    class Value:
        pass

    async def call(value: Value) -> None:
        await trio.sleep(1.0)

    value = Value()
    gone = ref(value)
    with nothing_left():
        await hedged(call, after=2.0, budget=1.0)(value)
        del value
        assert gone() is None
        await trio.sleep(1.5)


@pytest.mark.parametrize("first", ["returns", "raises"])
@pytest.mark.parametrize("second", ["returns", "raises"])
async def test_no_exception_is_in_a_cycle(first: str, second: str, autojump_clock: MockClock) -> None:
    """The second call raises before the first one ends, or returns after it has raised."""

    class BusyError(Exception):
        """Can be referred to weakly."""

    errors: WeakSet[Exception] = WeakSet()
    ends = iter([(5.0, first), (1.0 if second == "raises" else 4.0, second)])

    async def call(value: str) -> None:
        seconds, end = next(ends)
        await trio.sleep(seconds)
        if end == "raises":
            error = BusyError(value)
            errors.add(error)
            try:
                raise error
            finally:
                del error

    gc.disable()
    try:
        with suppress(BusyError):
            await hedged(call, after=2.0, budget=1.0)("a")
        assert list(errors) == []
    finally:
        gc.enable()


async def test_the_task_that_starts_second_calls_ends_with_the_last_operator(
    autojump_clock: MockClock, nothing_left: NothingLeft
) -> None:
    function = hedged(Scripted(default=Step(1.0)), after=3600.0)
    with nothing_left():
        async with unordered_wait("a", function, timeout=9.0) as first:
            async with unordered_wait("b", function, timeout=9.0) as second:
                assert [result async for result in second] == ["b"]
            assert [result async for result in first] == ["a"]


async def test_a_call_outside_the_operator_keeps_its_second_call(autojump_clock: MockClock) -> None:
    function, recorder = scripted(*SLOW_THEN_FAST)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(function, "a")
        await outputs(unordered_wait((), function, timeout=9.0))
    assert starts(recorder) == [0.0, 2.0]


@pytest.mark.parametrize("budget", [1.0, 0.001], ids=["hedged", "alone"])
async def test_a_result_while_being_cancelled_counts(budget: float, autojump_clock: MockClock) -> None:
    async def stubborn(value: str) -> str:
        with trio.CancelScope(shield=True):
            await trio.sleep(5.0)
        return value

    function = hedged(stubborn, after=2.0, budget=budget)
    with trio.move_on_after(3.0):
        assert await function("a") == "a"
        return
    pytest.fail("the result was lost")


async def test_an_exception_while_being_cancelled_is_raised(autojump_clock: MockClock) -> None:
    async def call(value: str) -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise OSError("while closing")

    with trio.move_on_after(3.0), pytest.raises(OSError, match="while closing"):
        await hedged(call, after=2.0, budget=1.0)("a")


HANGS = Step(99.0)
FAILS = Step(1.0, error=LookupError)


@pytest.mark.parametrize(
    ("steps", "ends"),
    [((HANGS, FAILS), ["error", "overload"]), ((FAILS, HANGS), ["cancelled", "error"])],
    ids=["the second failed", "the first failed"],
)
async def test_an_element_times_out_if_one_call_has_failed_and_the_other_one_hangs(
    steps: tuple[Step, Step], ends: list[str], autojump_clock: MockClock
) -> None:
    async def default(value: str) -> str:
        return "default"

    gate = Listener(weight=lambda value: 4.0)
    function, _ = scripted(*steps)
    async with unordered_wait("a", function, timeout=9.0, on_timeout=default, gate=gate) as results:
        assert [result async for result in results] == ["default"]
    assert results.statistics().timed_out == 1
    assert [each[0] for each in gate.heard] == ["started", "started", *ends]


@pytest.mark.parametrize("steps", [(HANGS, FAILS), (FAILS, HANGS)], ids=["the second failed", "the first failed"])
async def test_an_earlier_failure_is_not_raised_when_the_operator_is_cancelled(
    steps: tuple[Step, Step], autojump_clock: MockClock
) -> None:
    function, _ = scripted(*steps)
    with trio.move_on_after(5.0) as scope:
        async with unordered_wait("a", function, timeout=9.0) as results:
            await results.receive()
    assert scope.cancelled_caught
    assert (results.statistics().cancelled, results.statistics().failed) == (1, 0)


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
async def test_an_exit_is_raised_as_itself(error: type[BaseException], autojump_clock: MockClock) -> None:
    for steps in ([Step(1.0, error=error)], [Step(9.0), Step(1.0, error=error)]):
        function, _ = scripted(*steps)
        with pytest.raises(error):
            await function("a")


async def test_a_function_that_is_not_async_is_called_once(autojump_clock: MockClock) -> None:
    calls: list[str] = []
    function: Any = hedged(cast(Any, calls.append), after=2.0, budget=1.0)
    with pytest.raises(NotAsyncError):
        await function("a")
    assert calls == ["a"]


def test_a_throttle_of_an_earlier_run_is_forgotten() -> None:
    function, recorder = scripted(Step(1.0, error=ThrottledError), *SLOW_THEN_FAST)

    async def run() -> None:
        with trio.move_on_after(99.0):
            assert await function("a") == "second"

    with pytest.raises(ThrottledError):
        trio.run(run, clock=MockClock(autojump_threshold=0))
    trio.run(run, clock=MockClock(autojump_threshold=0))
    assert len(recorder.calls) == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"after": 0.0}, "after"),
        ({"after": inf}, "after"),
        ({"after": "p0"}, "after"),
        ({"after": "p100"}, "after"),
        ({"after": "95"}, "after"),
        ({"after": "p99.9"}, "after"),
        ({"budget": 0.0}, "budget"),
        ({"budget": inf}, "budget"),
    ],
)
def test_an_option_out_of_its_range_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        hedged(trio.sleep, **options)
