"""The timelines of the tutorials in docs/tutorial, by file name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from pictures.drawing import timeline
from pictures.runs import run, script
from trio_asyncio_io import ordered_wait
from trio_asyncio_io.trace import TraceRecorder

Lookup = Callable[[str], Awaitable[str]]


def _draw(name: str, title: str) -> str:
    """The timeline of a script that calls `weather`, with `ordered_wait` or by hand."""
    module = script(name)
    recorder = TraceRecorder(name=title, values=True)
    if hasattr(module, "ordered_wait"):
        module.ordered_wait = partial(ordered_wait, observer=recorder)
    else:
        module.weather = _recorded(module.weather, recorder, list(module.SECONDS))
    run(module.main)
    return timeline(recorder.trace(), title=title)


def _recorded(function: Lookup, recorder: TraceRecorder, values: list[str]) -> Lookup:
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


PICTURES: dict[str, Callable[[], str]] = {
    "tutorial/trio-1-loop.svg": partial(_draw, "start_trio_1_loop", "A loop: one call at a time"),
    "tutorial/trio-2-nursery.svg": partial(_draw, "start_trio_2_nursery", "A nursery: all calls at once"),
    "tutorial/trio-3-limit.svg": partial(_draw, "start_trio_3_limit", "A semaphore: three calls at once"),
    "tutorial/trio-4-ordered.svg": partial(
        _draw, "start_trio_4_ordered", "ordered_wait: three calls at once, in input order"
    ),
    "tutorial/trio-5-failures.svg": partial(
        _draw, "start_trio_5_failures", "ordered_wait: a failed call, and one that never ends"
    ),
}
