"""Policies and adapters keep the parameters and the result type of their function, however they are composed."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, assert_type

from trio_asyncio_io import AsyncFunction, AsyncWaitOperator, Results, StreamRecord, Watermark, keyed_wait, ordered_wait
from trio_asyncio_io.adapters import ResultFuture, from_asyncio, from_callback, from_future, in_thread
from trio_asyncio_io.gates import RateLimit
from trio_asyncio_io.policies import cached, gated, hedged, persistent, single_flight


class Length(AsyncFunction[str, int]):
    async def invoke(self, value: str) -> int:
        return len(value)


class Weather(AsyncFunction[Any, float]):
    async def invoke(self, origin: str, hour: int) -> float:
        return hour / len(origin)


class Names:
    """For asyncio: it has an `invoke` and no base class."""

    async def invoke(self, number: int) -> str:
        return str(number)


async def price(value: str) -> float:
    return float(value)


async def prices(values: list[str]) -> list[float]:
    return [float(value) for value in values]


async def words(text: str) -> list[str]:
    return text.split()


def blocking(text: str, base: int = 10) -> int:
    return int(text, base)


def submit(text: str) -> Future[int]:
    return ThreadPoolExecutor().submit(int, text)


def look_up(text: str, result_future: ResultFuture[int]) -> None:
    result_future.complete(int(text))


async def results_of_policies() -> None:
    async with ordered_wait(["a"], cached(Length()), timeout=5.0) as lengths:
        assert_type(lengths, Results[int, str])
    for policy in (cached(price), single_flight(price), cached(hedged(gated(price, RateLimit(5))))):
        async with ordered_wait(["1"], policy, timeout=5.0) as found:
            assert_type(found, Results[float, str])
    async with ordered_wait(["1"], persistent(single_flight(price), "answers.db", name="n"), timeout=5.0) as found:
        assert_type(found, Results[float, str])
    async with ordered_wait(["a b"], cached(words), timeout=5.0, flatten=True) as items:
        assert_type(items, Results[str, str])
    async with ordered_wait(["1"], hedged(prices), timeout=5.0, group=10) as found:
        assert_type(found, Results[float, str])
    async with keyed_wait([StreamRecord("1", 1)], cached(price), key=len, timeout=5.0) as marked:
        assert_type(marked, Results[StreamRecord[float] | Watermark, StreamRecord[str]])
    async with AsyncWaitOperator(cached(price), timeout=5.0) as operator:
        await operator.put("1")
        await operator.put(1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        assert_type(operator.output, Results[float, str])


async def results_of_adapters(unknown: Any) -> None:
    for adapter in (in_thread(blocking), cached(in_thread(blocking))):
        async with ordered_wait(["1"], adapter, timeout=5.0) as found:
            assert_type(found, Results[int, str])
    async with ordered_wait(["1"], from_future(submit), timeout=5.0) as found:
        assert_type(found, Results[int, str])
    async with ordered_wait(["1"], from_callback(look_up), timeout=5.0) as found:
        assert_type(found, Results[int, str])
    async with ordered_wait(["1"], from_asyncio(price), timeout=5.0) as prices_found:
        assert_type(prices_found, Results[float, str])
    async with ordered_wait([1], single_flight(from_asyncio(Names())), timeout=5.0) as names:
        assert_type(names, Results[str, int])
    async with ordered_wait(["1"], in_thread(partial(blocking, base=16)), timeout=5.0) as found:
        assert_type(found, Results[int, str])
    async with ordered_wait(["1"], from_callback(unknown), timeout=5.0) as anything:
        assert_type(anything, Results[Any, str])


async def calls() -> None:
    assert_type(await cached(price)("1"), float)
    assert_type(await cached(price)(value="1"), float)
    assert_type(await single_flight(cached(Weather()))("EWR", 3), float)
    assert_type(await cached(Weather()).invoke("EWR", hour=3), float)
    assert_type(await in_thread(blocking)("ff", base=16), int)
    assert_type(await from_future(submit)("1"), int)
    assert_type(await from_callback(look_up)("1"), int)
    assert_type(await from_asyncio(Names())(1), str)
    await cached(price)(1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await cached(price)()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    await single_flight(cached(Weather()))("EWR", "3")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await in_thread(blocking)("ff", "hex")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await from_future(submit)(1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await from_callback(look_up)(1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await from_asyncio(Names())("1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def values_that_do_not_fit() -> None:
    ordered_wait([1], cached(price), timeout=5.0)  # type: ignore[list-item]  # pyright: ignore[reportArgumentType, reportCallIssue]
    ordered_wait([1], cached(Length()), timeout=5.0)  # type: ignore[list-item]  # pyright: ignore[reportArgumentType, reportCallIssue]
    ordered_wait([1], cached(single_flight(price)), timeout=5.0)  # type: ignore[list-item]  # pyright: ignore[reportArgumentType, reportCallIssue]
    ordered_wait([1], hedged(price), timeout=5.0)  # type: ignore[list-item]  # pyright: ignore[reportArgumentType, reportCallIssue]
    ordered_wait([1], gated(price, RateLimit(5)), timeout=5.0)  # type: ignore[list-item]  # pyright: ignore[reportArgumentType, reportCallIssue]
    ordered_wait([1], persistent(price, "a.db", name="n"), timeout=5.0)  # type: ignore[list-item]  # pyright: ignore[reportArgumentType, reportCallIssue]
    ordered_wait([1], in_thread(str.upper), timeout=5.0)  # type: ignore[list-item]  # pyright: ignore[reportArgumentType, reportCallIssue]
    ordered_wait([1], from_future(submit), timeout=5.0)  # type: ignore[list-item]  # pyright: ignore[reportArgumentType, reportCallIssue]
    ordered_wait([1], from_callback(look_up), timeout=5.0)  # type: ignore[list-item]  # pyright: ignore[reportArgumentType, reportCallIssue]
    ordered_wait(["1"], from_asyncio(Names()), timeout=5.0)  # type: ignore[list-item]  # pyright: ignore[reportArgumentType, reportCallIssue]
