"""The elements of a source must fit the function."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import trio

from trio_asyncio_io import (
    AsyncFunction,
    AsyncWaitOperator,
    StreamRecord,
    Watermark,
    assign_watermarks,
    keyed_wait,
    ordered_wait,
    unordered_wait,
)
from trio_asyncio_io.policies import cached, single_flight


async def length(text: str) -> int:
    return len(text)


async def half(number: float) -> float:
    return number / 2


async def shown(value: object) -> str:
    return str(value)


async def or_none(text: str | None) -> int:
    return len(text or "")


class Length(AsyncFunction[str, int]):
    async def invoke(self, value: str) -> int:
        return len(value)


async def numbers() -> AsyncIterator[int]:
    yield 1


async def texts_that_fit(channel: trio.MemoryReceiveChannel[str], unknown: list[Any]) -> None:
    ordered_wait("abc", length, timeout=5.0)
    ordered_wait((text for text in "abc"), length, timeout=5.0)
    ordered_wait(channel, length, timeout=5.0)
    ordered_wait(unknown, length, timeout=5.0)
    ordered_wait([], length, timeout=5.0)
    ordered_wait(["a", None], or_none, timeout=5.0)
    unordered_wait(["a"], Length(), timeout=5.0)
    unordered_wait(["a"], cached(single_flight(Length())), timeout=5.0)
    keyed_wait(["a"], length, key=lambda text: text[0], timeout=5.0)
    AsyncWaitOperator(length, source=["a"], timeout=5.0)


def wider_parameters_fit() -> None:
    ordered_wait([1], half, timeout=5.0)
    ordered_wait([1, "a"], shown, timeout=5.0)
    keyed_wait([("a", 1)], shown, key=lambda pair: pair[0], timeout=5.0)


async def records_and_watermarks_that_fit(
    channel: trio.MemoryReceiveChannel[StreamRecord[str]], mixed: list[str | StreamRecord[str] | Watermark]
) -> None:
    elements = [StreamRecord("a", 1), Watermark(1)]
    ordered_wait(elements, length, timeout=5.0)
    ordered_wait([StreamRecord("a", 1), Watermark(1)], length, timeout=5.0)
    ordered_wait([Watermark(1)], length, timeout=5.0)
    ordered_wait((StreamRecord(text) for text in "abc"), length, timeout=5.0)
    ordered_wait(channel, length, timeout=5.0)
    ordered_wait(mixed, length, timeout=5.0)
    ordered_wait(assign_watermarks("abc", timestamp=ord, max_out_of_orderness=1), length, timeout=5.0)
    keyed_wait([StreamRecord("a", 1)], length, key=str.upper, timeout=5.0)
    # Bare values beside records or watermarks need an annotation, as `mixed` has: mypy joins them to `list[object]`
    ordered_wait(["a", Watermark(1)], length, timeout=5.0)  # type: ignore[list-item]
    operator = AsyncWaitOperator(length, timeout=5.0)
    await operator.put("a")


async def values_that_do_not_fit(channel: trio.MemoryReceiveChannel[int]) -> None:
    ordered_wait([1, 2], length, timeout=5.0)  # type: ignore[list-item]  # pyright: ignore[reportArgumentType, reportCallIssue]
    ordered_wait(["a", 1], length, timeout=5.0)  # type: ignore[list-item]  # pyright: ignore[reportArgumentType, reportCallIssue]
    ordered_wait(numbers(), length, timeout=5.0)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType, reportCallIssue]
    unordered_wait(channel, length, timeout=5.0)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType, reportCallIssue]
    unordered_wait([1], Length(), timeout=5.0)  # type: ignore[list-item]  # pyright: ignore[reportArgumentType, reportCallIssue]
    keyed_wait(["a"], length, key=abs, timeout=5.0)  # type: ignore[list-item]  # pyright: ignore[reportArgumentType, reportCallIssue]
    AsyncWaitOperator(length, source=[1], timeout=5.0)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType, reportCallIssue]
    ordered_wait(3, length, timeout=5.0)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]
    operator = AsyncWaitOperator(length, timeout=5.0)
    await operator.put(1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def records_that_do_not_fit(
    annotated: list[StreamRecord[int] | Watermark], records: Iterator[StreamRecord[int]]
) -> None:
    ordered_wait(annotated, length, timeout=5.0)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType, reportCallIssue]
    ordered_wait(records, length, timeout=5.0)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType, reportCallIssue]
    made = assign_watermarks([1], timestamp=abs, max_out_of_orderness=1)
    ordered_wait(made, length, timeout=5.0)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType, reportCallIssue]
