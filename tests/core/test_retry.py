"""The arithmetic of retry strategies. Tests of their use are in test_invoker_retry.py."""

from __future__ import annotations

import math
import pickle
from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from trio_asyncio_io import ExponentialBackoff, FixedDelay, RetryStrategy


def make(kind: type[RetryStrategy], max_retries: Any = 3, **keywords: Any) -> RetryStrategy:
    if kind is FixedDelay:
        return FixedDelay(max_retries, 0.5, **keywords)
    return ExponentialBackoff(max_retries, 0.5, 8.0, **keywords)


@pytest.fixture(params=[FixedDelay, ExponentialBackoff])
def kind(request: pytest.FixtureRequest) -> Any:
    return request.param


def is_busy(error: Exception) -> bool:
    return "busy" in str(error)


@pytest.mark.parametrize("attempt", [1, 2, 100])
@pytest.mark.parametrize("random", [0.0, 0.75])
def test_a_fixed_delay_is_the_same_for_every_attempt(attempt: int, random: float) -> None:
    assert FixedDelay(3, 0.5).backoff(attempt, random) == 0.5


def test_an_exponential_backoff_doubles_up_to_its_maximum() -> None:
    strategy = ExponentialBackoff(9, initial=0.25, maximum=3.0)
    assert [strategy.backoff(attempt, 0.0) for attempt in range(1, 7)] == [0.25, 0.5, 1.0, 2.0, 3.0, 3.0]


def test_each_delay_is_the_multiplier_times_the_last() -> None:
    strategy = ExponentialBackoff(9, initial=1.0, maximum=100.0, multiplier=3.0)
    assert [strategy.backoff(attempt, 0.0) for attempt in range(1, 6)] == [1.0, 3.0, 9.0, 27.0, 81.0]


@pytest.mark.parametrize(
    ("jitter", "random", "delay"),
    [(1.0, 0.0, 4.0), (1.0, 0.5, 2.0), (0.5, 0.5, 3.0), (0.0, 0.5, 4.0)],
)
def test_jitter_is_the_random_share_of_the_delay(jitter: float, random: float, delay: float) -> None:
    assert ExponentialBackoff(3, 4.0, 4.0, jitter=jitter).backoff(1, random) == delay


def test_the_delay_does_not_exceed_the_maximum_after_ten_thousand_attempts() -> None:
    assert ExponentialBackoff(10_000, 0.1, 60.0).backoff(10_000, 0.0) == 60.0


def test_an_initial_delay_of_zero_stays_zero_after_ten_thousand_attempts() -> None:
    assert ExponentialBackoff(10_000, 0.0, 60.0).backoff(10_000, 0.0) == 0.0


@pytest.mark.parametrize(
    ("retry_on", "retried"),
    [
        (OSError, {"OSError", "ConnectionError"}),
        ((ConnectionError, ValueError), {"ConnectionError", "ValueError"}),
        ((), set()),
        (Exception, {"OSError", "ConnectionError", "ValueError"}),
        (is_busy, {"ValueError"}),
        (lambda error: isinstance(error, ValueError), {"ValueError"}),
    ],
    ids=["a type", "a tuple", "no type", "all", "a predicate", "a lambda"],
)
def test_retry_on_is_a_type_a_tuple_or_a_predicate(kind: type[RetryStrategy], retry_on: Any, retried: set[str]) -> None:
    strategy = make(kind, retry_on=retry_on)
    errors: list[Exception] = [OSError("gone"), ConnectionError("reset"), ValueError("busy")]
    assert {type(error).__name__ for error in errors if strategy.retries_exception(error)} == retried


def test_a_type_matches_a_group_if_it_matches_each_exception_in_it(kind: type[RetryStrategy]) -> None:
    inner = ExceptionGroup("inner", [ConnectionError("reset"), TimeoutError("late")])
    mixed = ExceptionGroup("outer", [inner, ValueError("bad")])
    assert make(kind, retry_on=OSError).retries_exception(ExceptionGroup("outer", [inner]))
    assert not make(kind, retry_on=ConnectionError).retries_exception(inner)
    assert not make(kind, retry_on=OSError).retries_exception(mixed)
    assert make(kind, retry_on=(OSError, ValueError)).retries_exception(mixed)
    assert make(kind, retry_on=(ExceptionGroup, KeyError)).retries_exception(mixed)
    assert make(kind).retries_exception(mixed)
    assert not make(kind, retry_on=()).retries_exception(inner)


def test_a_predicate_receives_the_group_itself(kind: type[RetryStrategy]) -> None:
    group = ExceptionGroup("outer", [ConnectionError("reset")])
    assert make(kind, retry_on=lambda error: error is group).retries_exception(group)


def test_by_default_every_exception_and_no_result_is_retried(kind: type[RetryStrategy]) -> None:
    strategy = make(kind)
    assert strategy.retries_exception(Exception("any"))
    assert not strategy.retries_result(None)


def test_a_result_is_retried_if_the_predicate_is_true(kind: type[RetryStrategy]) -> None:
    strategy = make(kind, retry_on_result=lambda result: result is None)
    assert strategy.retries_result(None)
    assert not strategy.retries_result(0)


def test_a_strategy_pickles_and_is_immutable(kind: type[RetryStrategy]) -> None:
    """All elements of all operators share one object, on all machines."""
    strategy = make(kind, retry_on=(OSError, ValueError))
    assert pickle.loads(pickle.dumps(strategy)) == strategy
    with pytest.raises(FrozenInstanceError):
        strategy.max_retries = 7  # type: ignore[misc]


def test_a_custom_strategy_needs_only_backoff() -> None:
    class Linear(RetryStrategy):
        def backoff(self, attempt: int, random: float) -> float:
            return float(attempt)

    assert Linear(3, retry_on=OSError).backoff(2, 0.0) == 2.0


@pytest.mark.parametrize(
    ("max_retries", "error", "message"),
    [
        (-1, ValueError, "max_retries must be at least 0, got -1"),
        (1.5, TypeError, "max_retries must be a whole number, got 1.5"),
    ],
)
def test_an_invalid_number_of_retries_is_refused(
    kind: type[RetryStrategy], max_retries: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        make(kind, max_retries)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        (
            {"retry_on": BaseException},
            "retry_on must be a subclass of Exception or a tuple of them, got <class 'BaseException'>",
        ),
        (
            {"retry_on": (OSError, KeyboardInterrupt)},
            "retry_on must be a subclass of Exception or a tuple of them, got",
        ),
        ({"retry_on": OSError("an instance")}, "retry_on must be an exception type, a tuple of them or a predicate"),
        ({"retry_on": (OSError, is_busy)}, "retry_on must be a subclass of Exception or a tuple of them, got"),
        ({"retry_on": None}, "retry_on must be"),
        ({"retry_on_result": 3}, "retry_on_result must be callable, got 3"),
    ],
)
def test_an_invalid_retry_on_is_refused(kind: type[RetryStrategy], keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        make(kind, **keywords)


@pytest.mark.parametrize("seconds", [-0.1, math.inf, math.nan])
@pytest.mark.parametrize(
    ("name", "kind", "keywords"),
    [
        ("delay", FixedDelay, {}),
        ("initial", ExponentialBackoff, {"maximum": 1.0}),
        ("maximum", ExponentialBackoff, {"initial": 0.0}),
    ],
)
def test_infinite_and_negative_seconds_are_refused(name: str, kind: Any, keywords: Any, seconds: float) -> None:
    with pytest.raises(ValueError, match=f"{name} must be finite seconds and not negative, got {seconds}"):
        kind(3, **{name: seconds}, **keywords)


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"initial": 2.0}, ValueError, r"maximum must be at least initial \(2.0\), got 1.0"),
        ({"multiplier": 0.5}, ValueError, "multiplier must be finite and at least 1, got 0.5"),
        ({"jitter": 1.5}, ValueError, "jitter must be a share from 0.0 to 1.0, got 1.5"),
        ({"jitter": "full"}, TypeError, "jitter must be"),
        ({"initial": "1"}, TypeError, "initial must be seconds as a number such as 5.0, got '1'"),
        ({"budget": 10}, TypeError, "budget must be a RetryBudget or None, got 10"),
    ],
)
def test_invalid_arguments_of_an_exponential_backoff_are_refused(
    keywords: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        ExponentialBackoff(3, **{"initial": 0.5, "maximum": 1.0, **keywords})
