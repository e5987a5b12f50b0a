"""A page that shows frames one after another: what a queue or an operator holds, and what it lets out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

LEGEND = {"running": "running", "done": "completed", "wall-box": "watermark", "box": "may not start yet"}

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>@TITLE@</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><style>
:root{--fg:#1f2328;--soft:#59636e;--grid:#d0d7de;--panel:#8c959f1a;--run:#0072b2;--done:#009e73;--wall:#b3470a;
--focus:#4051b5}
@media (prefers-color-scheme:dark){:root{--fg:#e6edf3;--soft:#9198a1;--grid:#3d444d;--run:#56b4e9;--done:#2fd6a2;
--wall:#ff8a4c;--focus:#8c9eff}}
*{box-sizing:border-box}:focus-visible{outline:3px solid var(--focus);outline-offset:2px}
body{margin:0;padding:2px;font:15px/1.5 -apple-system,BlinkMacSystemFont,Helvetica,Arial,sans-serif;
color:var(--fg)}
main{border:1px solid var(--grid);border-radius:8px;padding:12px 16px;max-width:48em}
section{margin:0 0 12px;padding:10px 12px;background:var(--panel);border-radius:6px}
h1{font-size:1.1em;margin:0 0 .2em}.framed h1{display:none}h2{font-size:1em;margin:0 0 .2em}p{margin:.25em 0}
.step{display:none}.step.on{display:block}
span{display:inline-block;min-width:2.6em;text-align:center;border:2px solid var(--soft);border-radius:6px;
margin:.1em;padding:.15em .3em;font-family:ui-monospace,monospace}
.running{border-color:var(--run)}
.done{border-color:var(--done);background:color-mix(in srgb,var(--done) 25%,transparent)}
.wall-box{border-color:var(--wall)}
.soft{color:var(--soft)}
button{font:inherit;color:inherit;background:none;border:1px solid var(--soft);border-radius:6px;padding:4px 14px;
cursor:pointer}
button:hover{border-color:var(--focus)}button:disabled{opacity:.4;cursor:default}
.bar{display:flex;flex-wrap:wrap;gap:8px;align-items:center;margin:.5em 0}
</style></head><body><main><h1>@TITLE@</h1>
<p>@INTRO@ Step with the buttons or the arrow keys.</p>
<noscript><p><strong>This page needs JavaScript.</strong></p></noscript>
<p class="bar"><button id="back">Back</button> <button id="next">Next step</button>
<output id="at" class="soft" aria-live="polite"></output></p>
@SECTIONS@
<p class="soft">Borders: blue, running; green, completed; orange, a watermark; grey, waits for its start.</p>
</main><script>
if(self!==top)document.body.classList.add("framed");
let at=0,last=@LAST@;const back=document.getElementById("back"),next=document.getElementById("next");
function show(to){at=Math.max(0,Math.min(last,to));back.disabled=!at;next.disabled=at==last;
document.querySelectorAll(".step").forEach(each=>each.classList.toggle("on",each.dataset.step==at));
document.getElementById("at").textContent="step "+(at+1)+" of "+(last+1)}
back.onclick=()=>show(at-1);next.onclick=()=>show(at+1);
addEventListener("keydown",event=>{if(event.key=="ArrowRight")show(at+1);if(event.key=="ArrowLeft")show(at-1)});
show(0)
</script></body></html>
"""


@dataclass(frozen=True)
class Cell:
    """An entry at one step. `look` is a class of the style sheet."""

    name: str
    look: str


@dataclass(frozen=True)
class Frame:
    """What is held after a step, and what came out.

    Attributes:
        verb: How it came out.
        before: A further line, about what has not come in.
    """

    step: str
    cells: list[Cell]
    outputs: list[str]
    verb: str = "emitted"
    before: str = ""


def page(title: str, intro: str, sections: Mapping[str, Sequence[Frame]]) -> str:
    """A page without dependencies. Without JavaScript it shows no frame; the Markdown page shows them all."""
    shown = [f"<section><h2>{escape(name)}</h2>\n{_steps(frames)}</section>" for name, frames in sections.items()]
    last = max(map(len, sections.values())) - 1
    texts = {"@TITLE@": escape(title), "@INTRO@": intro, "@SECTIONS@": "\n".join(shown), "@LAST@": str(last)}
    document = PAGE
    for mark, text in texts.items():
        document = document.replace(mark, text)
    return document


def _steps(frames: Sequence[Frame]) -> str:
    return "\n".join(_step(number, frame) for number, frame in enumerate(frames))


def _step(number: int, frame: Frame) -> str:
    cells = "".join(f'<span class="{cell.look}">{escape(cell.name)}</span>' for cell in frame.cells) or "nothing"
    out = escape(" ".join(frame.outputs) or "nothing")
    lines = [escape(frame.step), *([escape(frame.before)] if frame.before else [])]
    head = "".join(f"<p>{line}</p>" for line in lines)
    return f'<div class="step" data-step="{number}">{head}{cells}<p>{escape(frame.verb)}: {out}</p></div>'
