"""A snapshot at several instants of a run, as a page to step through."""

from __future__ import annotations

import trio

from pictures.runs import run
from pictures.stepper import Cell, Frame, page
from trio_asyncio_io import Observer, SnapshotElement, ordered_wait

SECONDS = {"a": 0.3, "b": 0.1, "c": 0.3, "d": 0.2, "e": 0.1}
NAMES, INSTANTS = "abcde", (0.05, 0.15, 0.35, 0.45, 0.55)


class Started(Observer):
    """The records whose call has started."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def started(self, sequence: int, element: str) -> None:
        self.names.add(element)


def snapshot_steps() -> str:
    """Source, snapshot and consumer at each instant of a run."""
    intro = "Calls take 0.1 to 0.3 s. The boxes are the snapshot: what is in the operator."
    return page("A snapshot, step by step", intro, {"ordered_wait, capacity=2, buffer=4": run(_frames)})


async def _call(name: str) -> str:
    await trio.sleep(SECONDS[name])
    return name.upper()


async def _frames() -> list[Frame]:
    started = Started()
    received: list[str] = []
    frames: list[Frame] = []
    async with (
        trio.open_nursery() as nursery,
        ordered_wait(NAMES, _call, capacity=2, buffer=4, timeout=5.0, observer=started) as results,
    ):

        async def sample() -> None:
            for instant in INSTANTS:
                await trio.sleep_until(instant)
                snapshot = results.snapshot()
                cells = [_cell(each, started.names) for each in snapshot.elements]
                rest = " ".join(NAMES[snapshot.taken :]) or "nothing"
                frames.append(Frame(f"at {instant:.2f} s", cells, list(received), "received", f"in the source: {rest}"))

        nursery.start_soon(sample)
        async for result in results:
            received.append(result)  # noqa: PERF401 - `sample` reads it meanwhile
    return frames


def _cell(held: SnapshotElement, started: set[str]) -> Cell:
    if held.results is not None:
        return Cell(f"{held.element} = {held.results[0]}", "done")
    return Cell(held.element, "running" if held.element in started else "box")
