"""The three queues, step by step: as a picture, and as a page to step through."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape
from typing import Any

from tests.docs.pictures.figure import Figure, box
from tests.docs.pictures.runs import script
from trio_asyncio_io import (
    KeyedStreamElementQueue,
    OrderedStreamElementQueue,
    UnorderedStreamElementQueue,
    Watermark,
)
from trio_asyncio_io._core.queue import StreamElementQueue
from trio_asyncio_io.trace._svg import text

__all__ = ["queues", "stepper"]

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


@dataclass(frozen=True)
class Cell:
    """An entry at one step. `look` is a class of the style sheet."""

    name: str
    look: str


@dataclass(frozen=True)
class Frame:
    """What a queue holds after a step, and what it emits then."""

    step: str
    cells: list[Cell]
    outputs: list[str]


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


LEGEND = {"running": "running", "done": "completed", "wall-box": "watermark", "box": "may not start yet"}

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>The three queues, step by step</title>
<meta name="viewport" content="width=device-width"><style>
:root{--fg:#1f2328;--bg:#fff;--soft:#59636e;--run:#0072b2;--done:#009e73;--wall:#b3470a}
@media (prefers-color-scheme:dark){:root{--fg:#e6edf3;--bg:#0d1117;--soft:#9198a1;--run:#56b4e9;--done:#2fd6a2;
--wall:#ff8a4c}}
body{font:16px system-ui,sans-serif;color:var(--fg);background:var(--bg);max-width:46em;margin:1em auto;padding:0 1em}
section{margin:1.2em 0}h2{font-size:1em;margin:.3em 0}.step{display:none}.step.on{display:block}
span{display:inline-block;min-width:2.6em;text-align:center;border:2px solid var(--soft);border-radius:4px;
margin:.1em;padding:.2em;font-family:ui-monospace,monospace}
.running{border-color:var(--run)}
.done{border-color:var(--done);background:color-mix(in srgb,var(--done) 25%,transparent)}
.wall-box{border-color:var(--wall)}
.soft{color:var(--soft)}button{font:inherit;padding:.3em 1em}
</style></head><body><h1>The three queues, step by step</h1>
<p>Real queues, as in <code>learn_queues.py</code>. Step with the buttons or the arrow keys.</p>
<p><button id="back">back</button> <button id="next">next</button> <output id="at" aria-live="polite"></output></p>
@SECTIONS@
<p class="soft">Borders: blue, running; green, completed; orange, a watermark; grey, may not start yet.</p>
<script>
let at=0,last=@LAST@;
function show(to){at=Math.max(0,Math.min(last,to));
document.querySelectorAll(".step").forEach(each=>each.classList.toggle("on",each.dataset.step==at));
document.getElementById("at").textContent="step "+(at+1)+" of "+(last+1)}
document.getElementById("back").onclick=()=>show(at-1);document.getElementById("next").onclick=()=>show(at+1);
addEventListener("keydown",event=>{if(event.key=="ArrowRight")show(at+1);if(event.key=="ArrowLeft")show(at-1)});
show(0)
</script></body></html>
"""


def stepper() -> str:
    """The same frames as a page without dependencies. Without JavaScript it shows none of them; the picture does."""
    sections, last = [], 0
    for kind in RUNS:
        steps = []
        for number, frame in enumerate(frames(kind)):
            cells = "".join(f'<span class="{cell.look}">{escape(cell.name)}</span>' for cell in frame.cells)
            out = " ".join(frame.outputs) or "nothing"
            steps.append(
                f'<div class="step" data-step="{number}"><p>{escape(frame.step)}</p>{cells}<p>emitted: {out}</p></div>'
            )
            last = max(last, number)
        sections.append(f"<section><h2>{escape(HEADINGS[kind])}</h2>\n" + "\n".join(steps) + "</section>")
    return PAGE.replace("@SECTIONS@", "\n".join(sections)).replace("@LAST@", str(last))
