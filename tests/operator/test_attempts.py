"""Attempts: timeout, Retry-After and retry budget, at exact instants."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.properties.scenarios import Delays
from tests.support import outputs
from trio_asyncio_io import AttemptTimeoutError, ElementTimeoutError, FixedDelay, RetryBudget, ordered_wait
from trio_asyncio_io.gates import Auto
from trio_asyncio_io.testing import Recorder, Scripted, Step, fails_first


class BusyError(Exception):
    """Requests a delay before the next call."""

    def __init__(self, retry_after: float | None) -> None:
        super().__init__("busy")
        self.retry_after = retry_after


def spans(recorder: Recorder[Any, Any]) -> list[tuple[float, float | None]]:
    return [(call.started, call.ended) for call in recorder.calls]


async def test_an_attempt_that_exceeds_its_timeout_is_cancelled_and_retried(
    async_wait: Any, autojump_clock: MockClock
) -> None:
    """Even if `retry_on` does not match."""
    recorder = Recorder(Scripted({"a": [Step(math.inf), Step(math.inf), Step(0.5)]}))
    retry = FixedDelay(3, 1.0, retry_on=KeyError, attempt_timeout=2.0)
    assert await outputs(async_wait("a", recorder, timeout=60.0, retry=retry)) == ["a"]
    assert spans(recorder) == [(0.0, 2.0), (3.0, 5.0), (6.0, 6.5)]


async def test_the_element_fails_with_the_timeout_of_its_last_attempt(
    async_wait: Any, autojump_clock: MockClock
) -> None:
    async with async_wait(
        "a", Scripted(default=Step(9.0)), timeout=60.0, on_error="dead_letter", retry=late(1)
    ) as results:
        [dead_letter] = [dead_letter async for dead_letter in results.dead_letters]
    assert isinstance(dead_letter.error, AttemptTimeoutError)
    assert isinstance(dead_letter.error, trio.TooSlowError)
    assert str(dead_letter.error) == "attempt 2 gave no result for 'a' within its attempt_timeout of 2 s"
    assert dead_letter.error.timeout == 2.0
    statistics = results.statistics()
    assert (statistics.failed, statistics.timed_out, statistics.retried) == (1, 0, 1)


@pytest.mark.parametrize("outer_timeout", [math.inf, 20.0])
@pytest.mark.parametrize(("retry_on", "calls"), [(ConnectionError, 1), (TimeoutError, 1), (AttemptTimeoutError, 3)])
async def test_an_attempt_timeout_raised_by_the_function_is_retried_only_if_retry_on_matches(
    async_wait: Any, autojump_clock: MockClock, retry_on: Any, calls: int, outer_timeout: float
) -> None:
    async def enrich(value: str) -> list[str]:
        return await outputs(ordered_wait(value, Scripted(default=Step(math.inf)), timeout=60.0, retry=late(0)))

    recorder = Recorder(enrich)
    retry = FixedDelay(2, 1.0, retry_on=retry_on, attempt_timeout=outer_timeout)
    assert await outputs(async_wait("a", recorder, timeout=60.0, retry=retry, on_error="skip")) == []
    assert len(recorder.calls) == calls


def late(max_retries: int) -> FixedDelay:
    return FixedDelay(max_retries, 1.0, attempt_timeout=2.0)


async def test_a_strategy_of_the_user_sets_the_delays(async_wait: Any, autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted(default=Step(error=ConnectionError)))
    with pytest.raises(ConnectionError):
        await outputs(async_wait("a", recorder, timeout=60.0, retry=Delays(3, (1.0, 5.0, 0.0))))
    assert [call.started for call in recorder.calls] == [0.0, 1.0, 6.0, 6.0]


@pytest.mark.parametrize(("requested", "instants"), [(7.0, [0.0, 7.0]), (0.5, [0.0, 2.0]), (None, [0.0, 2.0])])
async def test_the_next_attempt_starts_after_the_longer_of_backoff_and_retry_after(
    async_wait: Any, autojump_clock: MockClock, requested: float | None, instants: list[float]
) -> None:
    recorder = Recorder(Scripted({"a": fails_first(1, BusyError(requested))}))
    assert await outputs(async_wait("a", recorder, timeout=60.0, retry=FixedDelay(3, 2.0))) == ["a"]
    assert [call.started for call in recorder.calls] == instants


async def test_retry_after_takes_a_custom_function_or_none(async_wait: Any, autojump_clock: MockClock) -> None:
    for read, second in ((lambda _: 3.0, 3.0), (None, 1.0)):
        start = trio.current_time()
        recorder = Recorder(Scripted({"a": fails_first(1, BusyError(50.0))}))
        await outputs(async_wait("a", recorder, timeout=60.0, retry=FixedDelay(1, 1.0, retry_after=read)))
        assert recorder.calls[1].started - start == second


async def test_a_retry_after_beyond_the_deadline_times_out_at_once(async_wait: Any, autojump_clock: MockClock) -> None:
    function = Scripted(default=Step(1.0, error=BusyError(3600.0)))
    with pytest.raises(ElementTimeoutError) as caught:
        await outputs(async_wait("a", function, timeout=10.0, retry=FixedDelay(5, 0.0)))
    assert isinstance(caught.value.__cause__, BusyError)
    assert trio.current_time() == 1.0


async def test_a_gate_gives_up_although_each_record_has_a_retry_after_of_days(
    async_wait: Any, autojump_clock: MockClock
) -> None:
    """Without a deadline, all records would wait for days, and none of them for the gate."""
    function = Scripted(default=Step(1.0, error=BusyError(86_400.0)))
    retry = FixedDelay(1000, 1.0)
    with pytest.raises(BusyError) as caught:
        await outputs(async_wait(range(1000), function, timeout=math.inf, capacity=3, gate=Auto(2, 3), retry=retry))
    assert "(give_up), so the operator stops" in str(caught.value.__notes__)
    assert trio.current_time() < 86_400.0


async def test_a_group_raised_by_a_nursery_is_retried_if_its_exceptions_match(
    async_wait: Any, autojump_clock: MockClock
) -> None:
    """After the longest delay that its exceptions request."""

    async def refuse(seconds: float) -> None:
        raise BusyError(seconds)

    async def enrich(value: str) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(refuse, 3.0)
            nursery.start_soon(refuse, 7.0)

    recorder = Recorder(enrich)
    async with async_wait(
        "a", recorder, timeout=60.0, retry=FixedDelay(1, 1.0, retry_on=BusyError), on_error=kind_of
    ) as results:
        assert [result async for result in results] == ["ExceptionGroup"]
    assert [call.started for call in recorder.calls] == [0.0, 7.0]


async def kind_of(value: str, error: Exception) -> str:
    return type(error).__name__


async def test_a_budget_limits_the_retries_of_all_elements_together(async_wait: Any, autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted(default=Step(1.0, error=OSError)))
    retry = FixedDelay(5, 0.0, budget=RetryBudget(ratio=0.1, reserve=3))
    async with async_wait(
        range(100), recorder, timeout=60.0, capacity=10, retry=retry, on_error="dead_letter"
    ) as results:
        dead_letters = [dead_letter async for dead_letter in results.dead_letters]
    statistics = results.statistics()
    assert len(recorder.calls) - 100 == statistics.retried
    assert 3 <= statistics.retried <= 3 + 0.1 * 100
    assert statistics.retries_denied == statistics.failed == len(dead_letters) == 100
    assert dead_letters[0].error.__notes__ == ["it was not retried: the operator's retry budget is used up"]


async def test_when_the_budget_is_used_up_the_last_result_counts(async_wait: Any, autojump_clock: MockClock) -> None:
    retry = FixedDelay(9, 1.0, retry_on_result=lambda _: True, budget=RetryBudget(ratio=0.0, reserve=2))
    recorder = Recorder(Scripted())
    assert await outputs(async_wait("a", recorder, timeout=60.0, retry=retry)) == ["a"]
    assert len(recorder.calls) == 3


async def test_two_operators_with_one_strategy_have_separate_budgets(autojump_clock: MockClock) -> None:
    retry = FixedDelay(1, 0.0, budget=RetryBudget(ratio=0.0, reserve=1))
    for _ in range(2):
        assert await outputs(ordered_wait("a", Scripted({"a": fails_first(1, OSError)}), timeout=1.0, retry=retry)) == [
            "a"
        ]


@pytest.mark.parametrize("attempt", range(10))
async def test_the_elements_deadline_takes_precedence_over_an_attempts(
    async_wait: Any, autojump_clock: MockClock, attempt: int
) -> None:
    """Repeated, because Trio runs the tasks that are due at one instant in random order."""

    async def late(value: str) -> str:
        return "late"

    recorder = Recorder(Scripted(default=Step(math.inf)))
    retry = FixedDelay(2, 0.0, attempt_timeout=1.0)
    async with async_wait("abc", recorder, timeout=3.0, retry=retry, on_timeout=late) as results:
        assert [result async for result in results] == ["late"] * 3
    assert trio.current_time() == 3.0
    assert len(recorder.calls) == 9
    statistics = results.statistics()
    assert (statistics.timed_out, statistics.failed) == (3, 0)


async def test_a_record_that_times_out_in_a_retry_leaves_the_deadlines_of_other_retries(
    async_wait: Any, autojump_clock: MockClock
) -> None:
    async def source() -> AsyncIterator[str]:
        yield "a"
        await trio.sleep(2.0)
        yield "b"

    async def late(value: str) -> tuple[str, float]:
        return value, trio.current_time()

    script = Scripted(default=[Step(1.0, error=OSError), Step(math.inf)])
    options: Any = {"timeout": 5.0, "retry": FixedDelay(3, 0.1), "on_timeout": late}
    with trio.fail_after(60.0):
        assert await outputs(async_wait(source(), script, **options)) == [("a", 5.0), ("b", 7.0)]
