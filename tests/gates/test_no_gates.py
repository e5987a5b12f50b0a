"""The lines of Python that an element executes in the modules of gates."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import trio

import trio_asyncio_io
from trio_asyncio_io import ordered_wait
from trio_asyncio_io.gates import Gate, RateLimit

PACKAGE = Path(trio_asyncio_io.__path__[0])
# What an operator's gates consist of. The options and the ledger also know of gates, and are needed without
MODULES = tuple(str(PACKAGE / module) for module in ("gates", "_operator/gates.py", "_core/gate.py"))


def lines_in_gates(gate: Callable[[], Gate | None], elements: int = 1_000) -> float:
    lines = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        return count if frame.f_code.co_filename.startswith(MODULES) else None

    def count(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return count

    async def call(value: int) -> int:
        await trio.lowlevel.checkpoint()
        return value

    async def run() -> None:
        async with ordered_wait(range(elements), call, capacity=100, timeout=5.0, gate=gate()) as results:
            async for _ in results:
                pass

    gc.collect()  # otherwise, what earlier operators left could be finalized meanwhile, and be counted
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        trio.run(run)
    finally:
        sys.settrace(before)
    return lines / elements


@pytest.mark.slow
def test_an_element_passes_no_line_of_the_gates_if_there_are_none() -> None:
    assert lines_in_gates(lambda: None) < 0.01  # a gate of another test may be collected meanwhile
    assert lines_in_gates(lambda: RateLimit(1e9)) > 1
