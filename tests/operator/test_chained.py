"""Two operators in a row: the results of one are the source of the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import trio

from trio_asyncio_io import Results, Snapshot, Watermark, ordered_wait

ELEMENTS = [1, 2, Watermark(2), 3, 4, 5, 6]
LIMITS: dict[str, Any] = {"capacity": 2, "buffer": 3, "timeout": 5.0}


async def double(number: int) -> int:
    await trio.sleep(0.2)
    return 2 * number


async def as_text(number: int) -> str:
    await trio.sleep(0.3)
    return str(number)


Consume = Callable[[Results[int], Results[str]], Any]


async def chained(source: Any, restored: tuple[Snapshot | None, Snapshot | None], consume: Consume) -> Any:
    first, second = restored
    async with (
        ordered_wait(source, double, restore=first, **LIMITS) as doubled,
        ordered_wait(doubled, as_text, restore=second, **LIMITS) as texts,
    ):
        return await consume(doubled, texts)


async def read_all(_: Results[int], texts: Results[str]) -> list[Any]:
    return [text async for text in texts]


async def test_a_watermark_passes_both_in_its_place(autojump_clock: trio.testing.MockClock) -> None:
    assert await chained(ELEMENTS, (None, None), read_all) == ["2", "4", Watermark(2), "6", "8", "10", "12"]


@pytest.mark.parametrize("received", range(len(ELEMENTS) + 1))
@pytest.mark.parametrize("later", [0.0, 0.1, 0.25])
async def test_two_snapshots_of_one_step_hold_each_element_once(
    autojump_clock: trio.testing.MockClock, received: int, later: float
) -> None:
    async def read_some(doubled: Results[int], texts: Results[str]) -> Any:
        seen = [await texts.receive() for _ in range(received)]
        await trio.sleep(later)
        return seen, (doubled.snapshot(), texts.snapshot())  # without an await between them

    seen, snapshots = await chained(ELEMENTS, (None, None), read_some)
    rest = ELEMENTS[snapshots[0].taken :]
    assert seen + await chained(rest, snapshots, read_all) == ["2", "4", Watermark(2), "6", "8", "10", "12"]
