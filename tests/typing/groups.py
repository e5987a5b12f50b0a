"""With `group`, the function takes and returns lists."""

from typing import assert_type

from trio_asyncio_io import AsyncFunction, AsyncWaitOperator, Results, keyed_wait, ordered_wait, unordered_wait
from trio_asyncio_io.policies import hedged


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


async def lists() -> None:
    async with ordered_wait(["1"], prices, timeout=5.0, group=10, group_wait=0.1, group_split=True) as results:
        assert_type(results, Results[float, str])
    async with unordered_wait(["1"], prices_or_errors, timeout=5.0, group=10, capacity=5) as results:
        assert_type(results, Results[float, str])
    async with keyed_wait(["1"], prices, key=str.upper, timeout=5.0, group=10) as results:
        assert_type(results, Results[float, str])
    async with ordered_wait(["1"], Lengths(), timeout=5.0, group=10) as lengths:
        assert_type(lengths, Results[int, str])
    async with AsyncWaitOperator(prices_or_errors, timeout=5.0, group=10) as operator:
        assert_type(operator, AsyncWaitOperator[str, float])
        await operator.put("1")
    async with ordered_wait(["1"], hedged(prices), timeout=5.0, group=10):
        pass


def mismatches() -> None:
    ordered_wait(["1"], price, timeout=5.0, group=10)  # type: ignore[arg-type, list-item] # pyright: ignore[reportArgumentType, reportCallIssue]
    ordered_wait(["1"], not_a_list, timeout=5.0, group=10)  # type: ignore[arg-type, list-item] # pyright: ignore[reportArgumentType, reportCallIssue]
    ordered_wait([1], prices, timeout=5.0, group=10)  # type: ignore[list-item] # pyright: ignore[reportArgumentType, reportCallIssue]
