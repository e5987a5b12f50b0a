"""Runs the simulation of the page simulator.html in Node.js, and the same calls through the real operator."""

from __future__ import annotations

from typing import Any

import trio
from trio.testing import MockClock

from tests.docs.javascript import TUTORIAL, evaluate
from trio_asyncio_io import AsyncWaitOperator
from trio_asyncio_io.gates import RateLimit

PAGE = TUTORIAL / "interactive" / "simulator.html"


def answers(settings: dict[str, float]) -> tuple[dict[str, Any], list[float]]:
    """The answers of the page's script, with the instants of all records, and the latencies of the calls."""
    found, latencies = evaluate(PAGE, "[answersFor(argument, argument.records), latenciesOf(argument)]", settings)
    return found, latencies


def instants(
    latencies: list[float], *, ordered: bool, capacity: int, buffer: int, rate: float
) -> list[dict[str, float]]:
    """When the real operator starts, ends and delivers each record, on a virtual clock."""
    seen: list[dict[str, float]] = [{} for _ in latencies]

    async def call(number: int) -> int:
        seen[number]["started"] = trio.current_time()
        await trio.sleep(latencies[number])
        seen[number]["ended"] = trio.current_time()
        return number

    async def main() -> None:
        operator = AsyncWaitOperator(
            call,
            mode="ordered" if ordered else "unordered",
            source=range(len(latencies)),
            capacity=capacity,
            buffer=buffer,
            timeout=float("inf"),
            gate=RateLimit(rate) if rate else None,
        )
        async with operator:
            async for number in operator.output:
                seen[number]["received"] = trio.current_time()

    trio.run(main, clock=MockClock(autojump_threshold=0))
    return seen


def throughput(seen: list[dict[str, float]]) -> float:
    """Records received in a second, from a quarter of the time until the last start, as on the page."""
    to = seen[-1]["started"]
    return sum(to / 4 < each["received"] <= to for each in seen) / (0.75 * to)
