"""Pathway: an async UDF with a capacity and a timeout."""

from __future__ import annotations

import asyncio
from typing import Any

import pathway
from pathway.internals.parse_graph import G
from serving import serve


def checkpoint(_: str, capacity: int, elements: float) -> dict[str, Any]:
    running = calls = peak = 0

    async def call(number: int) -> int:
        nonlocal running, calls, peak
        calls += 1
        running += 1
        peak = max(peak, running)
        await asyncio.sleep(0)
        running -= 1
        return number

    G.clear()  # remove the previous job
    udf = pathway.udf(call, executor=pathway.udfs.async_executor(capacity=capacity, timeout=5.0))
    rows = [(number,) for number in range(int(elements))]
    numbers = pathway.debug.table_from_rows(pathway.schema_from_types(number=int), rows)
    pathway.io.null.write(numbers.select(result=udf(pathway.this.number)))
    pathway.run(monitoring_level=pathway.MonitoringLevel.NONE)
    return {"calls": calls, "peak": peak}


if __name__ == "__main__":
    serve({"checkpoint": checkpoint})
