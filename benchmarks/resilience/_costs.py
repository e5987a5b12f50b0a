"""An experiment that counts the instructions of an element whose gates have nothing to do."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from functools import cache, partial
from types import FrameType
from typing import Any

import trio

from trio_asyncio_io import gates, ordered_wait

from ..instructions import ROOT, counted
from ._experiment import Criterion, Experiment, Result

__all__ = ["EXPERIMENTS", "lines_in_gates"]

NOTHING = "nothing configured"
IDLE = ("AdaptiveRate", "CircuitBreaker")
MODES = ("ordered", "unordered")
LINES = "lines in the gates' modules, per element"
# What an operator's gates consist of. The options and the ledger also know of gates, and are needed without
MODULES = ("gates/", "_gates.py", "_core/gate.py")


@cache
def _instructions(capacity: int) -> dict[str, float]:
    """Of an element, by mode and gate."""
    cases = [f"{mode} {capacity} {gate}".rstrip() for mode in MODES for gate in ("", *IDLE)]
    return dict(zip(cases, counted(ROOT, cases), strict=True))


def lines_in_gates(gate: Callable[[], gates.Gate | None], elements: int = 1_000) -> float:
    """The lines of Python that an element of an operator executes in the modules of gates."""
    package = str(ROOT / "trio_asyncio_io") + "/"
    files = tuple(package + module for module in MODULES)
    lines = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        if not frame.f_code.co_filename.startswith(files):
            return None
        return count

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


def _cost(name: str, quick: bool) -> Result:
    capacity = 1 if quick else 100
    found = _instructions(capacity)
    values: dict[str, float | None] = {
        mode: found[f"{mode} {capacity} {name}"] / found[f"{mode} {capacity}"] - 1 if name in IDLE else 0.0
        for mode in MODES
    }
    return Result({**values, LINES: lines_in_gates(getattr(gates, name, lambda: None))}, [])


ADDED = "{:+.1%}"

EXPERIMENTS = [
    Experiment(
        "cost",
        "What a gate costs that has nothing to do",
        "The instructions of an element whose call is one checkpoint, at a capacity of 100, as "
        "`python -m benchmarks.instructions` counts them with valgrind's cachegrind. Here the clock stands still",
        "Instructions, compared with an operator without gates. Without one, no line of the gates' modules is "
        "executed for an element.",
        "",
        {**dict.fromkeys(MODES, ADDED), LINES: "{:.1f}"},
        [
            Criterion(LINES, maximum=0.0, of=NOTHING),
            *(Criterion(mode, maximum=0.03, of=name) for name in IDLE for mode in MODES),
        ],
        {name: partial(_cost, name) for name in (*IDLE, NOTHING)},
    )
]
