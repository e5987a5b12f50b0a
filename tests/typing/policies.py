"""Policies keep the result type of their function, however they are composed."""

from __future__ import annotations

from typing import assert_type

from trio_asyncio_io import AsyncFunction, Results, ordered_wait
from trio_asyncio_io.gates import RateLimit
from trio_asyncio_io.policies import cached, gated, grouped, hedged, persistent, single_flight


class Length(AsyncFunction[str, int]):
    async def invoke(self, value: str) -> int:
        return len(value)


class Lengths(AsyncFunction[list[str], list[int]]):
    async def invoke(self, value: list[str]) -> list[int]:
        return [len(text) for text in value]


async def price(value: str) -> float:
    return float(value)


async def prices(values: list[str]) -> list[float]:
    return [float(value) for value in values]


async def prices_or_errors(values: list[str]) -> list[float | Exception]:
    return [float(value) if value else ValueError("empty") for value in values]


async def not_a_list(values: list[str]) -> int:
    return len(values)


async def composed() -> None:
    assert_type(cached(single_flight(price)), cached[float])
    assert_type(grouped(prices), grouped[float])
    assert_type(cached(hedged(price)), cached[float])
    assert_type(cached(gated(price, RateLimit(5))), cached[float])
    assert_type(grouped(prices_or_errors), grouped[float])
    assert_type(grouped(Lengths()), grouped[int])
    assert_type(persistent(single_flight(grouped(prices)), "answers.db"), persistent[float])
    assert_type(await grouped(prices_or_errors)("1"), float)
    grouped(not_a_list)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    async with ordered_wait(["a"], cached(Length()), timeout=5.0) as lengths:
        assert_type(lengths, Results[int])
    async with ordered_wait(["a"], cached(grouped(prices)), timeout=5.0) as results:
        assert_type(results, Results[float])
