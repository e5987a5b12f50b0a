"""Pictures with numbers over time."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import trio

from pictures.drawing import panels_of
from pictures.figure import cross, line, text
from pictures.killed_job import job
from pictures.lanes import LEFT, RIGHT, Lanes
from pictures.runs import record, run, script
from trio_asyncio_io import Observer
from trio_asyncio_io.checkpoints import Checkpoint


class Instants(Observer):
    """The instants of four steps."""

    def __init__(self) -> None:
        self.up: dict[str, list[float]] = {"accepted": [], "started": [], "slot_freed": [], "emitted": []}

    def accepted(self, *_: Any) -> None:
        self.up["accepted"].append(trio.current_time())

    def started(self, *_: Any) -> None:
        self.up["started"].append(trio.current_time())

    def slot_freed(self, *_: Any) -> None:
        self.up["slot_freed"].append(trio.current_time())

    def emitted(self, *_: Any) -> None:
        self.up["emitted"].append(trio.current_time())

    def counts(self, more: str, less: str = "") -> list[tuple[float, int]]:
        """How many records have taken one step and not the other, after each instant."""
        changes: dict[float, int] = {}
        for name, change in ((more, 1), (less, -1)):
            for at in self.up.get(name, []):
                changes[round(at, 6)] = changes.get(round(at, 6), 0) + change
        total, steps = 0, []
        for at, change in sorted(changes.items()):
            total += change
            steps.append((at, total))
        return steps


def life() -> str:
    """D2: the states of four records, and both counters."""
    module, instants = script("learn_life"), Instants()
    run(module.main, instants)
    [panel] = panels_of(record("capacity=2, buffer=3", module.main))
    lanes = Lanes("The life of four records", instants.up["emitted"][-1])
    lanes.draw_panel(panel)
    running, held = instants.counts("started", "slot_freed"), instants.counts("accepted", "emitted")
    lanes.draw_curves("calls that run: capacity", {"run": running}, 40, top=2)
    lanes.draw_curves("records that are held: buffer", {"order": held}, 60, top=3)
    lanes.draw_axis()
    lanes.draw_keys(
        {
            "slot": "waits for a slot, or for the consumer",
            "run": "running, in a slot",
            "order": "completed, waits for the output order",
            "dot": "received by the consumer",
        }
    )
    return lanes.svg(
        "Rows for the records a, b, c and d, with their states over time, and two curves below. The number of "
        "running calls never exceeds 2, the number of held records never exceeds 3. Record d is accepted only "
        "when a has been received.",
        "life",
    )


def backpressure() -> str:
    """D6: the consumer pauses, the buffer fills, the source stops."""
    module, instants = script("learn_capacity"), Instants()
    run(module.slow_consumer, observer=instants)
    received, accepted = instants.up["emitted"], instants.up["accepted"]
    start = received[7]
    lanes = Lanes("A consumer that pauses stops the source", received[-1])
    lanes.draw_curves(
        "records so far", {"order": instants.counts("accepted"), "emitted": instants.counts("emitted")}, 170
    )
    lanes.draw_curves("held: accepted, not yet received", {"run": instants.counts("accepted", "emitted")}, 60, top=8)
    top, left, width = 60, lanes.x(start), lanes.x(start + 3.0) - lanes.x(start)
    lanes.behind(f'<rect class="pause" x="{left:.1f}" y="{top}" width="{width:.1f}" height="{lanes.y - top:g}"/>')
    lanes.draw_axis()
    lanes.draw_keys(
        {
            "curve-order": "accepted from the source",
            "curve-emitted": "received by the consumer",
            "curve-run": "held: at most buffer=8",
            "pause": "the consumer is busy elsewhere",
        }
    )
    meanwhile = sum(start < at <= start + 3.0 for at in accepted)
    return lanes.svg(
        f"Two curves of 40 records. While the consumer pauses for three seconds, {meanwhile} more records are "
        "accepted until eight are held. Then the source is not read until the consumer returns.",
        "backpressure",
    )


def checkpoint() -> str:
    """D11: the position in the output file, with commits, a kill, and the cut."""
    position: list[tuple[float, int]] = []
    commits: list[tuple[float, int]] = []
    offset = 0.0

    def note(at: int, what: str) -> None:
        now = round(trio.current_time() + offset, 6)
        (commits if what == "commit" else position).append((now, at))

    with tempfile.TemporaryDirectory() as folder:
        stored: list[Checkpoint] = []
        run(job, Path(folder, "squares"), stored, note, kill_after=8)
        kill, offset = position[-1][0], position[-1][0] + 0.3
        run(job, Path(folder, "squares"), stored, note)
    lanes = Lanes("A kill, and the cut to the last durable checkpoint", position[-1][0])
    top = lanes.y
    lanes.draw_curves("bytes in the output file", {"emitted": position}, 170)
    bottom, scale = lanes.y, 170 / max(at for _, at in position)
    for at, where in commits:
        lanes.add_dot(lanes.x(at), bottom - where * scale)
    last = commits[0][1]
    lanes.parts.append(line(LEFT, bottom - last * scale, RIGHT, bottom - last * scale, "limit"))
    for at, what in ((kill, "killed"), (offset, "started again")):
        lanes.parts.append(line(lanes.x(at), top + 50, lanes.x(at), bottom, "wall"))
        side = "end" if what == "killed" else "start"
        lanes.parts.append(text(lanes.x(at) + (-6 if side == "end" else 6), top + 60, what, "wall-name", side))
    lanes.parts.append(cross(lanes.x(offset), bottom - last * scale))
    lanes.draw_axis()
    lanes.draw_keys(
        {
            "curve-emitted": "written to the file",
            "limit": "position in the last commit before the kill",
            "dot": "commit: snapshot and position",
            "cross": "the file is cut back to that position",
        }
    )
    return lanes.svg(
        "The length of the output file over time. It grows with each result. After five results there is a "
        "commit. After eight the process is killed. The new process cuts the file back to the position of the "
        "commit, restores the snapshot, and continues until all twenty results are there.",
        "checkpoint",
    )
