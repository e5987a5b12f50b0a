"""Policies keep the result type of their function, however they are composed."""

from __future__ import annotations

from typing import assert_type

from trio_asyncio_io import AsyncFunction, Results, ordered_wait
from trio_asyncio_io.gates import RateLimit
from trio_asyncio_io.policies import cached, gated, hedged, persistent, single_flight


class Length(AsyncFunction[str, int]):
    async def invoke(self, value: str) -> int:
        return len(value)


async def price(value: str) -> float:
    return float(value)


async def composed() -> None:
    assert_type(cached(single_flight(price)), cached[float])
    assert_type(cached(hedged(price)), cached[float])
    assert_type(cached(gated(price, RateLimit(5))), cached[float])
    assert_type(persistent(single_flight(price), "answers.db"), persistent[float])
    async with ordered_wait(["a"], cached(Length()), timeout=5.0) as lengths:
        assert_type(lengths, Results[int, str])
