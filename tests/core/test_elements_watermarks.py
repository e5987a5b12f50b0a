"""Watermarks assigned from timestamps."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import count, islice
from typing import Any, Self

import pytest

from trio_asyncio_io import StreamRecord, Watermark, assign_watermarks, unordered_wait


def assign(timestamps: Any, bound: Any) -> list[Any]:
    """Assign watermarks; return timestamps as they are, and watermarks as ("W", timestamp)."""
    elements = assign_watermarks(timestamps, timestamp=lambda value: value, max_out_of_orderness=bound)
    return [("W", each.timestamp) if isinstance(each, Watermark) else each.value for each in elements]


def test_a_value_becomes_a_record_with_its_timestamp() -> None:
    first, *_ = assign_watermarks(["abc"], timestamp=len, max_out_of_orderness=1)
    assert first == StreamRecord("abc", 3)


def test_a_watermark_follows_whenever_time_has_advanced_by_the_bound() -> None:
    assert assign([10, 11, 12, 13, 14], 2) == [10, ("W", 8), 11, 12, ("W", 10), 13, 14, ("W", 12)]


def test_with_a_bound_of_zero_a_watermark_follows_whenever_time_has_advanced() -> None:
    assert assign([1, 1, 2, 1, 3], 0) == [1, ("W", 1), 1, 2, ("W", 2), 1, 3, ("W", 3)]


def test_the_last_watermark_is_emitted_once_at_the_end_of_the_source() -> None:
    assert assign([10, 11], 2) == [10, ("W", 8), 11, ("W", 9)]
    assert assign([10, 12], 2) == [10, ("W", 8), 12, ("W", 10)]


def test_a_late_record_is_passed_on_and_causes_no_watermark() -> None:
    assert assign([10, 3, 10], 2) == [10, ("W", 8), 3, 10]


@pytest.mark.parametrize("null", [None, math.nan, Decimal("NaN")], ids=repr)
@pytest.mark.parametrize("bound", [0, 1])
def test_a_null_timestamp_causes_no_watermark_at_any_position(null: Any, bound: int) -> None:
    values = [1, 2, 3]
    expected = [each for each in assign(values, bound) if isinstance(each, tuple)]
    for position in range(4):
        out = assign([*values[:position], null, null, *values[position:]], bound)
        assert [each for each in out if isinstance(each, tuple)] == expected
        assert sum(each is null for each in out) == 2
    assert assign([null], bound) == [null]


def test_an_empty_source_has_no_watermark() -> None:
    assert assign([], 1) == []


def test_watermarks_are_strictly_increasing() -> None:
    out = assign([5, 1, 9, 2, 8, 30, 29, 31, 31, 0], 3)
    watermarks = [each[1] for each in out if isinstance(each, tuple)]
    assert watermarks == sorted(set(watermarks))


@pytest.mark.parametrize("bound", [-1, -0.5, timedelta(seconds=-1), math.nan])
def test_a_negative_bound_is_refused(bound: Any) -> None:
    with pytest.raises(ValueError, match="max_out_of_orderness must not be negative, got"):
        assign_watermarks([], timestamp=lambda value: value, max_out_of_orderness=bound)


@pytest.mark.parametrize("bound", ["10 seconds", None, date(2013, 1, 1)])
def test_a_bound_that_is_no_distance_between_timestamps_is_refused(bound: Any) -> None:
    with pytest.raises(TypeError, match=r"^max_out_of_orderness must be a number .*, or a timedelta, got"):
        assign_watermarks([], timestamp=lambda value: value, max_out_of_orderness=bound)


@pytest.mark.parametrize("timestamp", ["time_hour", None])
def test_a_timestamp_that_is_no_function_is_refused(timestamp: Any) -> None:
    with pytest.raises(TypeError, match=f"^timestamp must be callable, got {timestamp!r}$"):
        assign_watermarks([], timestamp=timestamp, max_out_of_orderness=1)


@pytest.mark.parametrize(
    ("start", "step"),
    [
        (datetime(2013, 1, 1, tzinfo=UTC), timedelta(hours=1)),
        (date(2013, 1, 1), timedelta(days=1)),
        (1.5, 0.25),
    ],
)
def test_any_type_that_supports_subtraction_is_a_timestamp(start: Any, step: Any) -> None:
    assert assign([start, start + step], step) == [start, ("W", start - step), start + step, ("W", start)]


def test_a_bound_whose_type_needs_arguments_is_accepted() -> None:
    """Such as a pandas `Timedelta`."""

    class Span(timedelta):
        def __new__(cls, *, days: int) -> Self:
            return super().__new__(cls, days=days)

    day = date(2013, 1, 2)
    assert assign([day], Span(days=1)) == [day, ("W", date(2013, 1, 1))]


def test_the_source_is_read_lazily() -> None:
    elements = assign_watermarks(count(), timestamp=lambda value: value, max_out_of_orderness=1)
    assert [type(each) for each in islice(elements, 3)] == [StreamRecord, Watermark, StreamRecord]


async def test_an_async_source_has_the_same_elements() -> None:
    async def source() -> AsyncIterator[int]:
        for value in (10, 11, 12, 13):
            yield value

    elements = assign_watermarks(source(), timestamp=lambda value: value, max_out_of_orderness=2)
    assert [each async for each in elements] == list(
        assign_watermarks([10, 11, 12, 13], timestamp=lambda value: value, max_out_of_orderness=2)
    )


async def test_the_operator_emits_no_record_across_an_assigned_watermark() -> None:
    async def upper(value: str) -> str:
        return value.upper()

    source = assign_watermarks(["b", "a", "dd"], timestamp=len, max_out_of_orderness=0)
    async with unordered_wait(source, upper, timeout=1.0) as results:
        out = [each async for each in results]
    assert out[0] == StreamRecord("B", 1)
    assert out[1:] == [Watermark(1), StreamRecord("A", 1), StreamRecord("DD", 2), Watermark(2)]
