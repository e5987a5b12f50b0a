"""The tasks of our operator, from a run, and the threads of Flink's, by hand."""

from __future__ import annotations

import trio
from trio.testing import MockClock

from pictures.figure import Figure, arrow, box, text
from trio_asyncio_io import unordered_wait

ROLES = {
    "feeder": "reads the source, waits for room",
    "emitter": "moves outputs, in their order",
    "timer": "sleeps until the first deadline",
    "worker": "calls the function, one at a time",
}


class Spawned(trio.abc.Instrument):
    """The tasks below the main task, in the order in which they start."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def task_spawned(self, task: trio.lowlevel.Task) -> None:
        if task.name.startswith("trio_asyncio_io "):
            assert task.parent_nursery is not None
            assert task.parent_nursery.parent_task.name.endswith("main")
            self.names.append(task.name.removeprefix("trio_asyncio_io "))


def _tasks() -> list[str]:
    """The tasks of an operator with a capacity of three, as Trio reports them."""

    async def call(number: int) -> int:
        await trio.sleep(1)
        return number

    async def main() -> None:
        async with unordered_wait(range(9), call, capacity=3, timeout=5.0) as results:
            async for _ in results:
                pass

    spawned = Spawned()
    trio.run(main, clock=MockClock(autojump_threshold=0), instruments=[spawned])
    return sorted(spawned.names, key=list(ROLES).index)


def task_tree() -> str:
    """D16: one nursery owns every task."""
    names = _tasks()
    figure = Figure(
        "Nine elements, capacity=3: one nursery owns six tasks",
        f"The task of the block opens a nursery. The nursery owns these tasks: {', '.join(names)}. At its end "
        "they have all ended.",
        "task-tree",
    )
    figure.add(box(14, 52, 190, 36, "your task: async with"))
    figure.add(f'<rect class="group" x="230" y="46" width="396" height="{46 * len(names) + 16}" rx="6"/>')
    figure.add(arrow(204, 70, 230, 70))
    for number, name in enumerate(names):
        y = 58 + 46 * number
        figure.add(box(244, y, 96, 34, name, "running" if name == "worker" else "done"))
        figure.add(text(350, y + 22, ROLES[name], "soft"))
    bottom = 46 + 46 * len(names) + 16
    figure.add(text(14, 116, "receives the results", "soft"), text(14, 134, "from a channel", "soft"))
    figure.y = bottom + 4
    figure.label("The end of the block: the nursery is cancelled, and the block waits until every task has unwound.")
    return figure.svg()


def flink_threads() -> str:
    """D15: Flink's first operator beside ours."""
    figure = Figure(
        "Flink 1.2 to 1.9: threads around a lock. Here: tasks in one thread",
        "Left: the task thread puts elements into the queue, the emitter thread takes them out, a timer thread "
        "and an executor complete entries, the client's threads call back; the checkpoint lock and conditions of "
        "the queue coordinate them. Right: feeder, workers, emitter and deadlines are tasks in one thread. The "
        "queue is plain data between them. Nothing is locked, because a task is only suspended at an await.",
        "flink-threads",
    )
    figure.add(text(14, 74, "Flink's first AsyncWaitOperator", "name"), text(340, 74, "this operator", "name"))
    left = [
        ("task thread", "put; snapshot"),
        ("emitter thread", "peek, emit, poll"),
        ("client's threads", "complete"),
        ("timer thread", "time out"),
        ("executor thread", "onComplete"),
    ]
    for number, (name, role) in enumerate(left):
        y = 90 + 50 * number
        figure.add(box(14, y, 140, 40, f"{name}\n{role}"), arrow(154, y + 20, 200, y + 20))
    figure.add(box(200, 90, 106, 240, "checkpoint\nlock\n+\nconditions\nof the queue", "lock"))
    right = [
        ("feeder", "while full: wait; put"),
        ("workers", "await function(value)"),
        ("emitter", "poll; emit"),
        ("timer", "cancel the scope"),
    ]
    figure.add('<rect class="group" x="340" y="84" width="286" height="252" rx="6"/>')
    for number, (name, role) in enumerate(right):
        y = 96 + 50 * number
        figure.add(box(352, y, 150, 40, f"{name}\n{role}", "running"), arrow(502, y + 20, 530, y + 20))
    figure.add(box(530, 96, 86, 190, "queue\nand\nledger:\nplain data", "done"))
    figure.add(text(352, 318, "one thread, one nursery, no lock", "soft"))
    figure.y = 340
    figure.label(
        "Left: drawn by hand after FLIP-12 and Flink's source. Since FLINK-12958 and FLINK-14044, Flink runs "
        "all this in the task thread, too: results arrive as mails, and a full queue yields to the mailbox."
    )
    return figure.svg()
