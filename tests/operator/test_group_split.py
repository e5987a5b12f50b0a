"""The option `group_split`: the records of a call that has failed are called again in halves."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from math import ceil, log2
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.plain_gates import Refusing
from trio_asyncio_io import (
    AttemptTimeoutError,
    DeadLetter,
    FixedDelay,
    Options,
    RetryBudget,
    ordered_wait,
    transient,
    unordered_wait,
)
from trio_asyncio_io.gates import CircuitBreaker, PerKey, RateLimit, RefusedError


class Service:
    """Answers a list of values unless one of them is poisoned. Counts its calls."""

    def __init__(self, *poisoned: int, error: Callable[[], Exception] = lambda: ValueError("status 400")) -> None:
        self.poisoned = set(poisoned)
        self.error = error
        self.calls: list[list[int]] = []

    async def __call__(self, values: list[int]) -> list[int]:
        self.calls.append(values)
        await trio.sleep(1.0)
        if self.poisoned & set(values):
            raise self.error()
        return values


async def results_and_letters(results: Any) -> tuple[list[Any], list[DeadLetter]]:
    async with results as channel:
        return [result async for result in channel], [letter async for letter in channel.dead_letters]


@pytest.mark.parametrize("group", [1, 2, 5, 8, 100])
@pytest.mark.parametrize("poisoned", [0, 421, 999])
async def test_one_poisoned_row_among_a_thousand_costs_two_calls_for_each_halving(
    group: int, poisoned: int, autojump_clock: MockClock
) -> None:
    service = Service(poisoned)
    out, letters = await results_and_letters(
        ordered_wait(range(1000), service, group=group, group_split=True, timeout=60.0, on_error="dead_letter")
    )
    assert out == [value for value in range(1000) if value != poisoned]
    assert [(letter.element, repr(letter.error)) for letter in letters] == [(poisoned, "ValueError('status 400')")]
    assert len(service.calls) - ceil(1000 / group) <= 2 * ceil(log2(group))
    assert sum(call == [poisoned] for call in service.calls) == 1


async def test_the_records_of_a_failed_call_are_called_in_halves(autojump_clock: MockClock) -> None:
    service = Service(1)
    async with unordered_wait(range(5), service, group=5, group_split=True, timeout=60.0, on_error="skip") as results:
        received = [(result, trio.current_time()) async for result in results]
    assert service.calls == [[0, 1, 2, 3, 4], [0, 1, 2], [3, 4], [0, 1], [2], [0], [1]]
    assert received == [(3, 2.0), (4, 2.0), (2, 3.0), (0, 4.0)]
    numbers = results.statistics()
    assert (numbers.groups, numbers.grouped) == (7, 5 + 5 + 3 + 2)
    assert (numbers.retried, numbers.completed, numbers.failed, numbers.running) == (5 + 3 + 2, 4, 1, 0)


async def test_the_first_row_that_fails_alone_stops_the_operator(autojump_clock: MockClock) -> None:
    with pytest.raises(ValueError, match="status 400") as caught:
        await results_and_letters(ordered_wait(range(4), Service(2), group=4, group_split=True, timeout=60.0))
    assert "element 2, 2, attempt 3" in caught.value.__notes__


async def test_a_malformed_answer_is_split(autojump_clock: MockClock) -> None:
    async def loses_empty(values: list[str]) -> list[str]:
        return [value for value in values if value]

    out, letters = await results_and_letters(
        ordered_wait(["a", "", "c"], loses_empty, group=3, group_split=True, timeout=60.0, on_error="dead_letter")
    )
    assert (out, [letter.element for letter in letters]) == (["a", "c"], [""])


async def test_an_exception_in_the_list_is_not_split(autojump_clock: MockClock) -> None:
    calls = count()

    async def answers(values: list[int]) -> list[Any]:
        next(calls)
        return [ValueError("bad") if value == 1 else value for value in values]

    out, _ = await results_and_letters(
        ordered_wait(range(4), answers, group=4, group_split=True, timeout=60.0, on_error="skip")
    )
    assert (out, next(calls)) == ([0, 2, 3], 1)


class ServiceError(Exception):
    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


@pytest.mark.parametrize(
    "error",
    [
        lambda: ServiceError(503),
        lambda: ServiceError(429),
        ConnectionResetError,
        lambda: RefusedError("no more calls"),
        lambda: ExceptionGroup("several", [ValueError(), RefusedError("no more calls")]),
    ],
)
async def test_an_error_of_the_service_is_not_split(error: Callable[[], Exception], autojump_clock: MockClock) -> None:
    service = Service(0, error=error)
    out, letters = await results_and_letters(
        ordered_wait(range(4), service, group=4, group_split=True, timeout=60.0, on_error="dead_letter")
    )
    assert (out, len(letters), len(service.calls)) == ([], 4, 1)


async def test_a_call_that_a_gate_refuses_is_not_split(autojump_clock: MockClock) -> None:
    service = Service()
    async with ordered_wait(
        range(4), service, group=4, group_split=True, timeout=60.0, on_error="skip", gate=Refusing()
    ) as results:
        assert [result async for result in results] == []
    assert (service.calls, results.statistics().refused, results.statistics().groups) == ([], 4, 0)


async def test_a_circuit_that_opens_ends_the_halves(autojump_clock: MockClock) -> None:
    service = Service(*range(8))
    gate = CircuitBreaker("fail", calls=3, classify=lambda error: "overload")
    async with ordered_wait(
        range(8), service, group=8, group_split=True, timeout=60.0, on_error="skip", gate=gate, capacity=1
    ) as results:
        assert [result async for result in results] == []
    assert (len(service.calls), results.statistics().groups) == (3, 3)


# With retries


async def test_halves_follow_the_last_retry_and_have_none_left(autojump_clock: MockClock) -> None:
    service = Service(1)
    out, _ = await results_and_letters(
        ordered_wait(
            range(3), service, group=3, group_split=True, timeout=60.0, retry=FixedDelay(1, 10.0), on_error="skip"
        )
    )
    assert out == [0, 2]
    assert service.calls == [[0, 1, 2], [0, 1, 2], [0, 1], [2], [0], [1]]


async def test_a_half_has_the_retries_that_its_records_have_left(autojump_clock: MockClock) -> None:
    """A half is not a retry. It is retried apart from the other half."""
    calls: list[tuple[float, list[int]]] = []

    async def fails_in_two_ways(values: list[int]) -> list[int]:
        calls.append((trio.current_time(), values))
        if 1 in values:
            raise ValueError("status 400")
        if len(calls) < 5:
            raise ConnectionResetError
        return values

    out, letters = await results_and_letters(
        ordered_wait(
            range(4),
            fails_in_two_ways,
            group=4,
            group_split=True,
            timeout=60.0,
            retry=FixedDelay(2, 10.0, retry_on=transient),
            on_error="dead_letter",
        )
    )
    assert out == [0, 2, 3]
    assert [(letter.element, letter.attempts) for letter in letters] == [(1, 3)]
    assert calls == [
        (0.0, [0, 1, 2, 3]),
        (0.0, [0, 1]),
        (0.0, [2, 3]),
        (0.0, [0]),
        (0.0, [1]),
        (10.0, [2, 3]),
        (10.0, [0]),
    ]


async def test_the_retry_budget_counts_the_records_of_halves(autojump_clock: MockClock) -> None:
    service = Service(0)
    retry = FixedDelay(1, 1.0, retry_on=transient, budget=RetryBudget(ratio=0.0, reserve=6.0))
    async with ordered_wait(
        range(4), service, group=4, group_split=True, timeout=60.0, retry=retry, on_error="skip"
    ) as results:
        assert [result async for result in results] == [1, 2, 3]
    assert results.statistics().retried == 6
    retry = FixedDelay(1, 1.0, retry_on=transient, budget=RetryBudget(ratio=0.0, reserve=5.0))
    async with ordered_wait(
        range(4), Service(0), group=4, group_split=True, timeout=60.0, retry=retry, on_error="skip"
    ) as results:
        assert [result async for result in results] == [2, 3]
    numbers = results.statistics()
    assert (numbers.retried, numbers.retries_denied, numbers.failed) == (5, 1, 2)


async def test_the_budget_denies_a_record_once(autojump_clock: MockClock) -> None:
    retry = FixedDelay(1, 1.0, budget=RetryBudget(ratio=0.0, reserve=0.0))
    async with ordered_wait(
        range(4), Service(0), group=4, group_split=True, timeout=60.0, retry=retry, on_error="skip"
    ) as results:
        assert [result async for result in results] == []
    assert results.statistics().retries_denied == 4


# Time


async def test_halves_happen_within_the_timeout_of_each_record(autojump_clock: MockClock) -> None:
    service = Service(0)
    async with ordered_wait(
        range(8), service, group=8, group_split=True, timeout=2.5, on_error="dead_letter"
    ) as results:
        assert [result async for result in results] == [4, 5, 6, 7]
        letters = [(letter.element, type(letter.error).__name__) async for letter in results.dead_letters]
    assert letters == [(number, "ElementTimeoutError") for number in range(4)]
    assert trio.current_time() == 2.5


async def test_an_attempt_that_takes_too_long_is_split(autojump_clock: MockClock) -> None:
    async def slow_for_2(values: list[int]) -> list[int]:
        await trio.sleep(60.0 if 2 in values else 1.0)
        return values

    out, letters = await results_and_letters(
        ordered_wait(
            range(4),
            slow_for_2,
            group=4,
            group_split=True,
            timeout=100.0,
            retry=FixedDelay(0, 1.0, attempt_timeout=5.0),
            on_error="dead_letter",
        )
    )
    assert out == [0, 1, 3]
    assert [(letter.element, type(letter.error)) for letter in letters] == [(2, AttemptTimeoutError)]
    assert trio.current_time() == 15.0


# Gates


async def test_gates_count_each_call_with_its_weight(autojump_clock: MockClock) -> None:
    gate = RateLimit(1.0, burst=15, weight=float)
    out, _ = await results_and_letters(
        ordered_wait([1, 2, 4, 8], Service(8), group=4, group_split=True, timeout=1e3, on_error="skip", gate=gate)
    )
    assert out == [1, 2, 4]
    assert trio.current_time() == 3 + 12 + 12 + 1  # 15 are free; the halves weigh 3, 12, 4 and 8


async def test_halves_pass_the_gates_of_their_key(autojump_clock: MockClock) -> None:
    service = Service(11)
    gate = PerKey(RateLimit(0.5), key=lambda value: value // 10)
    out, _ = await results_and_letters(
        ordered_wait([10, 20, 11, 21], service, group=2, group_split=True, timeout=60.0, on_error="skip", gate=gate)
    )
    assert out == [10, 20, 21]
    assert service.calls == [[10, 11], [20, 21], [10], [11]]
    assert trio.current_time() == 5.0


def test_group_split_needs_group() -> None:
    with pytest.raises(ValueError, match="group_split=True needs group="):
        Options(1.0, group_split=True)


# What the failure says


async def test_the_note_of_a_failed_call_names_the_group(autojump_clock: MockClock) -> None:
    async def for_one_value(value: Any) -> Any:
        return value * "2"

    with pytest.raises(TypeError, match="can't multiply sequence") as caught:
        await results_and_letters(ordered_wait([5, 6, 7], for_one_value, group=5, timeout=60.0))
    assert caught.value.__notes__ == [
        "the call was for a group of 3 records, the first is element 0, 5: with group= the function gets a list",
        "element 0, 5, attempt 1",
    ]
