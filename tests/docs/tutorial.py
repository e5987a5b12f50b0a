"""Draws the timelines of the tutorials: runs their scripts and records the calls."""

from __future__ import annotations

import importlib.util
from collections.abc import Awaitable, Callable
from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path
from types import ModuleType

import trio
from trio.testing import MockClock

from trio_asyncio_io import ordered_wait
from trio_asyncio_io.trace import TraceRecorder, timeline

__all__ = ["TIMELINES", "draw"]

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"

# By drawing, below docs: the script, and the title
TIMELINES = {
    "start/trio-1-loop.svg": ("start_trio_1_loop.py", "A loop: one call at a time"),
    "start/trio-2-nursery.svg": ("start_trio_2_nursery.py", "A nursery: all calls at once"),
    "start/trio-3-limit.svg": ("start_trio_3_limit.py", "A semaphore: three calls at once"),
    "start/trio-4-ordered.svg": ("start_trio_4_ordered.py", "ordered_wait: three calls at once, in input order"),
    "start/trio-5-failures.svg": ("start_trio_5_failures.py", "ordered_wait: a failed call, and one that never ends"),
}


def draw(target: Path) -> None:
    """Write all drawings below this directory."""
    for drawing, (script, title) in TIMELINES.items():
        module = _load(script)
        recorder = TraceRecorder(name=title, values=True)
        if hasattr(module, "ordered_wait"):
            module.ordered_wait = partial(ordered_wait, observer=recorder)
        else:
            module.weather = _recorded(module.weather, recorder, list(module.SECONDS))
        with redirect_stdout(StringIO()):
            trio.run(module.main, clock=MockClock(autojump_threshold=0))
        path = target / drawing
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(timeline(recorder.trace(), title=title), encoding="utf-8")


def _load(script: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(script, EXAMPLES / script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _recorded(
    function: Callable[[str], Awaitable[str]], recorder: TraceRecorder, values: list[str]
) -> Callable[[str], Awaitable[str]]:
    """The function, whose calls without an operator are recorded as the steps of an operator's records."""

    async def call(value: str) -> str:
        if recorder.trace()["otherData"]["records"] == 0:
            for number, each in enumerate(values):
                recorder.accepted(number, each)
        sequence = values.index(value)
        recorder.started(sequence, value)
        result = await function(value)
        recorder.completed(sequence, value, 1, 0.0)
        for step in (recorder.slot_freed, recorder.dequeued, recorder.emitted):
            step(sequence, value)
        return result

    return call
