"""Distinct keys: equal only if the types are equal, as with the stable keys of `persistent`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from trio_asyncio_io.policies import cached, persistent, single_flight
from trio_asyncio_io.policies._persistent import stable_key
from trio_asyncio_io.policies._policy import distinct_key
from trio_asyncio_io.testing import Recorder, Scripted, Step


class Color(IntEnum):
    RED = 1


class Pair(NamedTuple):
    a: int
    b: int


@dataclass(frozen=True)
class Point:
    x: int


class FrozenMap(Mapping[Any, Any]):
    def __init__(self, **items: Any) -> None:
        self._items = items

    def __getitem__(self, key: Any) -> Any:
        return self._items[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(frozenset(self._items.items()))

    def __repr__(self) -> str:
        return f"FrozenMap({self._items})"


NOON = datetime(2026, 10, 25, 12, tzinfo=UTC)
EQUAL_IN_PYTHON = [
    [1, 1.0, True, Decimal(1), Decimal("1.0"), Fraction(1), complex(1), Color.RED],
    [0, 0.0, -0.0, False],
    [(1,), (1.0,), (True,)],
    [(("a", 1), 2), (("a", True), 2)],
    [(1, 2), Pair(1, 2)],
    [frozenset({1}), frozenset({1.0}), frozenset({True})],
    [FrozenMap(a=1), FrozenMap(a=True), FrozenMap(a=1.0)],
    [NOON, NOON.astimezone(timezone(timedelta(hours=2)))],
    [NOON.replace(tzinfo=None), NOON.replace(tzinfo=None, fold=1)],
]


@pytest.mark.parametrize("values", EQUAL_IN_PYTHON, ids=repr)
def test_values_of_different_types_that_are_equal_in_python_have_different_keys(values: list[Any]) -> None:
    for one, other in combinations(values, 2):
        assert one == other
        assert distinct_key(one) != distinct_key(other)


PLAIN = (
    st.none()
    | st.booleans()
    | st.integers(-2, 2)
    | st.sampled_from([0.0, -0.0, 1.0, math.nan, float("nan"), math.inf])
    | st.sampled_from(["", "1", b"", b"1", Decimal(1), Decimal("1.0"), date(2026, 1, 1), datetime(2026, 1, 1), NOON])
    | st.sampled_from([timedelta(1), timedelta(hours=24), UUID(int=1)])
)
KEYS = st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=2).map(tuple), max_leaves=4)


@given(KEYS, KEYS)
def test_distinct_keys_are_equal_exactly_if_the_stable_keys_are(one: Any, other: Any) -> None:
    assert (distinct_key(one) == distinct_key(other)) == (stable_key(one) == stable_key(other))
    assert hash(distinct_key(one)) == hash(distinct_key(one))


def test_objects_are_equal_if_their_class_defines_them_so() -> None:
    assert distinct_key((Point(1), "a")) == distinct_key((Point(1), "a"))
    assert distinct_key(Point(1)) != distinct_key(Point(2))


KINDS = [1, True, 1.0, (1, ("a", True)), (1, ("a", 1)), 0.0, -0.0, math.nan]


@pytest.mark.parametrize("policy", ["cached", "persistent"])
@pytest.mark.parametrize("key", [None, lambda value: value], ids=["arguments", "key"])
async def test_both_caches_agree_on_which_calls_differ(policy: str, key: Any, tmp_path: Path) -> None:
    recorder = Recorder(Scripted())
    if policy == "cached":
        function: Any = cached(recorder, key=key)
    else:
        function = persistent(recorder, tmp_path / "cache.sqlite", name="n", key=key)
    await function.open()
    for _ in range(2):
        for value in KINDS:
            assert repr(await function(value)) == repr(value)
    await function.close()
    assert [*map(repr, recorder.values)] == [*map(repr, KINDS)]
    assert function.hits == len(KINDS)


async def test_calls_with_arguments_of_different_types_share_no_request(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted(default=Step(1.0)))
    function = single_flight(recorder)
    results: dict[int, Any] = {}

    async def call(number: int, value: Any) -> None:
        results[number] = await function(value)

    async with trio.open_nursery() as nursery:
        for number, value in enumerate(KINDS * 2):
            nursery.start_soon(call, number, value)
    assert [repr(results[number]) for number in range(len(KINDS) * 2)] == [*map(repr, KINDS * 2)]
    assert (function.calls, function.shared) == (len(KINDS), len(KINDS))
