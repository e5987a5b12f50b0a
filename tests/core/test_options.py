"""The defaults of the options, and the refusal of invalid values."""

from __future__ import annotations

import math
import pickle
from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from trio_asyncio_io import FixedDelay, Options, Snapshot, SnapshotElement, ordered_wait


async def never(value: Any, error: Exception | None = None) -> Any:
    raise AssertionError


def test_defaults_are_finite_and_timeout_is_required() -> None:
    options = Options(5.0)
    assert (options.capacity, options.buffer, options.on_error, options.retry) == (100, 10_000, "raise", None)
    with pytest.raises(TypeError, match="timeout"):
        ordered_wait([], never)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("capacity", "buffer"),
    [(1, 1_000), (10, 1_000), (11, 1_100), (1_000, 100_000), (5_000, 100_000), (200_000, 200_000)],
)
def test_the_default_buffer_is_a_hundred_times_the_capacity_within_limits(capacity: int, buffer: int) -> None:
    assert Options(1.0, capacity=capacity).buffer == buffer


@pytest.mark.parametrize("timeout", [0, 0.0, 5, 0.25, math.inf])
def test_a_timeout_is_a_number_of_seconds_or_infinity(timeout: float) -> None:
    assert Options(timeout).timeout == timeout
    assert isinstance(Options(timeout).timeout, float)


@pytest.mark.parametrize(
    ("timeout", "error"),
    [
        (-1, ValueError),
        (-0.001, ValueError),
        (math.nan, ValueError),
        (-math.inf, ValueError),
        (None, TypeError),
        ("5", TypeError),
        (True, TypeError),
    ],
)
def test_an_invalid_timeout_is_refused(timeout: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=f"timeout must be seconds.*math.inf for none.*got '?{timeout}"):
        Options(timeout)


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"capacity": 0}, ValueError, "capacity must be at least 1, got 0"),
        ({"capacity": 10**400}, ValueError, "capacity must be at most 1,000,000,000, got 1000"),
        ({"capacity": 1.0}, TypeError, "capacity must be a whole number, got 1.0"),
        ({"capacity": 8, "buffer": 7}, ValueError, "buffer must be at least the capacity, 8, got 7"),
        ({"buffer": math.inf}, TypeError, "buffer must be a whole number, got inf"),
        ({"retry": 3}, TypeError, r"retry must be a RetryStrategy such as FixedDelay\(3, 1.0\), got 3"),
        ({"flatten": "outer"}, TypeError, "flatten must be True or False, got 'outer'"),
        ({"group": 2, "group_split": 1}, TypeError, "group_split must be True or False, got 1"),
        ({"on_timeout": "skip"}, TypeError, "on_timeout must be an async callable or None, got 'skip'"),
        (
            {"on_error": "ignore"},
            ValueError,
            """on_error must be "raise", "skip", "dead_letter" or an async callable, got 'ignore'""",
        ),
        (
            {"on_error": None},
            TypeError,
            'on_error must be "raise", "skip", "dead_letter" or an async callable, got None',
        ),
        ({"mode": "sorted"}, ValueError, "mode must be one of ordered, unordered, keyed, got 'sorted'"),
        ({"mode": "keyed"}, TypeError, 'mode "keyed" takes key=, a callable, and no other mode does; got None'),
        ({"mode": "keyed", "key": "id"}, TypeError, r"key must be a function .* got 'id'"),
        ({"mode": "keyed", "key": 3}, TypeError, "key must be callable, got 3"),
        ({"mode": "ordered", "key": repr}, TypeError, 'mode "keyed" takes key=.* and no other mode does'),
    ],
)
def test_an_invalid_option_is_refused_with_its_name_and_value(
    keywords: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        Options(1.0, **keywords)


def test_integers_of_other_libraries_are_accepted() -> None:
    class Int64:
        def __init__(self, number: int) -> None:
            self.number = number

        def __index__(self) -> int:
            return self.number

    options = Options(1.0, capacity=Int64(7), buffer=Int64(8))  # type: ignore[arg-type]
    assert (options.capacity, options.buffer) == (7, 8)
    assert (type(options.capacity), type(options.buffer)) == (int, int)


def test_options_pickle_and_are_immutable() -> None:
    snapshot = Snapshot((SnapshotElement(0, "a", ["A"]),))
    options = Options(
        2.0, capacity=3, retry=FixedDelay(2, 0.5), on_timeout=never, on_error=never, flatten=True, restore=snapshot
    )
    assert pickle.loads(pickle.dumps(options)) == options
    with pytest.raises(FrozenInstanceError):
        options.capacity = 4  # type: ignore[misc]
