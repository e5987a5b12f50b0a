"""Daft: an async function as a column UDF. Its limit counts batches, and it has no timeout."""

from __future__ import annotations

import asyncio
from typing import Any

import daft
from serving import serve


def checkpoint(_: str, capacity: int, elements: float) -> dict[str, Any]:
    running = calls = peak = 0

    @daft.func(max_concurrency=capacity)
    async def call(number: int) -> int:
        nonlocal running, calls, peak
        calls += 1
        running += 1
        peak = max(peak, running)
        await asyncio.sleep(0)
        running -= 1
        return number

    numbers = daft.from_pydict({"number": list(range(int(elements)))})
    numbers.select(call(daft.col("number"))).collect()
    return {"calls": calls, "peak": peak}


if __name__ == "__main__":
    serve({"checkpoint": checkpoint})
