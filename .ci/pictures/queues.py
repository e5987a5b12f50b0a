"""The three queues, step by step: as a picture, and as a page to step through."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pictures.figure import Figure, box, text
from pictures.runs import script
from pictures.stepper import LEGEND, Cell, Frame, page
from trio_asyncio_io import Watermark
from trio_asyncio_io.queues import (
    KeyedStreamElementQueue,
    OrderedStreamElementQueue,
    StreamElementQueue,
    UnorderedStreamElementQueue,
)

KEYED = ["a1", "a2", "b1", "b2"]
RUNS: dict[str, tuple[Callable[[], StreamElementQueue], list[Any], str]] = {
    "ordered": (lambda: OrderedStreamElementQueue(4), [], "r2 r4 r3 r1"),
    "unordered": (lambda: UnorderedStreamElementQueue(4), [], "r2 r4 r3 r1"),
    "keyed, by the first character": (
        lambda: KeyedStreamElementQueue(4, key=lambda value: value[0]),
        KEYED,
        "b1 a1 b2 a2",
    ),
}
HEADINGS = {
    "ordered": "ordered: only the head may leave",
    "unordered": "unordered: only the first segment may leave",
    "keyed, by the first character": "keyed: a2 runs after a1, b2 after b1",
}


def frames(kind: str) -> Iterator[Frame]:
    """A real queue at each step of docs/examples/learn_queues.py."""
    module = script("learn_queues")
    make, elements, completions = RUNS[kind]
    queue = make()
    entries = {}
    for element in elements or module.ELEMENTS:
        entries[_name(element)] = queue.try_put(element)
    for step in ["all put", *completions.split()]:
        if step in entries:
            entries[step].complete([step.upper()])
        cells = [Cell(_name(entry.element), _look(queue, entry)) for entry in queue.entries()]
        caption = f"{step} completes" if step in entries else step
        yield Frame(caption, cells, module.emitted(queue))


def _name(element: Any) -> str:
    return str(element.timestamp) if isinstance(element, Watermark) else element


def _look(queue: StreamElementQueue, entry: Any) -> str:
    if entry.is_watermark:
        return "wall-box"
    if entry.is_done:
        return "done"
    return "running" if queue.may_start(entry) else "box"


def queues() -> str:
    """D12: the three queues step by step."""
    figure = Figure(
        "What each queue holds, and what it lets out",
        "Three queues at each step. Ordered: nothing leaves until r1 completes, then everything does. Unordered: "
        "r2 and r3 leave when they complete, but r4 waits for the watermark w2, which waits for r1. Keyed: a2 "
        "runs only when a1 has completed, and b1 overtakes a1.",
        "queues",
    )
    for kind in RUNS:
        figure.y += 26
        figure.add(text(14, figure.y, HEADINGS[kind], "name"))
        figure.y += 8
        for frame in frames(kind):
            figure.add(text(14, figure.y + 20, frame.step, "soft"))
            for number, cell in enumerate(frame.cells):
                figure.add(box(120 + 50 * number, figure.y + 3, 44, 24, cell.name, cell.look))
            out = " ".join(frame.outputs) or "nothing"
            figure.add(text(440, figure.y + 20, f"→ {out}", "" if frame.outputs else "soft"))
            figure.y += 32
    figure.y += 10
    for number, (look, label) in enumerate(LEGEND.items()):
        x = 14 + 152 * number
        figure.add(box(x, figure.y, 22, 16, "", look), text(x + 28, figure.y + 13, label, "soft"))
    figure.y += 20
    return figure.svg()


def stepper() -> str:
    """The same frames as a page to step through."""
    sections = {HEADINGS[kind]: list(frames(kind)) for kind in RUNS}
    return page("The three queues, step by step", "Real queues, as in <code>learn_queues.py</code>.", sections)
