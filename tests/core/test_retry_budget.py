"""The account behind a retry budget."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from trio_asyncio_io import FixedDelay, RetryBudget, ordered_wait
from trio_asyncio_io._core.retry import BudgetAccount


@given(st.lists(st.booleans()), st.floats(0, 2), st.integers(0, 5))
def test_retries_never_exceed_the_reserve_plus_the_ratio_of_the_calls(
    steps: list[bool], ratio: float, reserve: int
) -> None:
    account = BudgetAccount(RetryBudget(ratio, reserve))
    calls = retries = 0
    for is_call in steps:
        if is_call:
            account.deposit()
            calls += 1
        else:
            retries += account.withdraw()
        assert retries <= reserve + ratio * calls + 1e-9


@pytest.mark.parametrize("reserve", [0, 0.5, 0.99, 1, 3])
@pytest.mark.parametrize("ratio", [0.0, 0.1, 0.2, 0.7, 1.0, 1.5, 2.0])
def test_the_whole_reserve_and_ratio_are_spent_when_all_calls_fail(ratio: float, reserve: float) -> None:
    account = BudgetAccount(RetryBudget(ratio, reserve))
    retries = 0
    for _ in range(1_000):
        account.deposit()
        while account.withdraw():
            retries += 1
    assert retries == pytest.approx(reserve + 1_000 * ratio, abs=1.0 + ratio)  # a deposit into a full account is lost


@pytest.mark.parametrize(
    ("ratio", "reserve", "saved"), [(0.2, 0, 1), (1.0, 0, 1), (1.0, 1, 1), (2.5, 0, 3), (0.9, 5, 5)]
)
def test_without_failures_the_balance_is_limited(ratio: float, reserve: float, saved: int) -> None:
    account = BudgetAccount(RetryBudget(ratio, reserve))
    for _ in range(1_000):
        account.deposit()
    assert [account.withdraw() for _ in range(saved + 1)] == [True] * saved + [False]


async def test_a_balance_of_one_allows_one_retry(autojump_clock: MockClock) -> None:
    calls = []

    async def fail(value: int) -> None:
        calls.append(value)
        raise ConnectionError("down")

    retry = FixedDelay(5, 1.0, budget=RetryBudget(ratio=0.0, reserve=1.0))
    async with ordered_wait([7], fail, timeout=60.0, retry=retry, on_error="skip") as results:
        assert [each async for each in results] == []
    assert calls == [7, 7]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ratio": -0.1}, "ratio must be retries for each call, finite and not negative, got -0.1"),
        ({"ratio": math.nan}, "ratio must be .* got nan"),
        ({"reserve": -1}, "reserve must be a number of retries, finite and not negative, got -1"),
        ({"reserve": math.inf}, "reserve must be .* got inf"),
    ],
)
def test_an_invalid_argument_is_refused_with_its_name_and_value(arguments: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RetryBudget(**arguments)


@pytest.mark.parametrize("capacity", [1, 10, 100])
def test_without_a_reserve_calls_that_fail_together_still_have_the_ratio(capacity: int) -> None:
    account = BudgetAccount(RetryBudget(0.2, reserve=0), capacity)
    retries = 0
    for _ in range(50):
        for _ in range(capacity):
            account.deposit()
        retries += sum(account.withdraw() for _ in range(capacity))
    assert retries == pytest.approx(0.2 * 50 * capacity, abs=1)


def test_the_default_reserve_is_ten() -> None:
    account = BudgetAccount(RetryBudget())
    assert [account.withdraw() for _ in range(11)] == [True] * 10 + [False]
