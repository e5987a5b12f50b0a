"""SVG drawings: their elements, their document, and the colors of all views, for light and dark pages."""

from __future__ import annotations

from xml.sax.saxutils import escape, quoteattr

from .._values.describe import printable

__all__ = ["STYLE", "bar", "cross", "document", "dot", "escaped", "group", "line", "style_sheet", "text"]

# Color-blind safe (Okabe and Ito)
LIGHT = """--fg:#1f2328;--soft:#59636e;--grid:#d0d7de;--run:#0072b2;--bad:#c4372a;--backoff:#b5c7d6;--handler:#7a5195;
--order:#e69f00;--emitted:#009e73;--wall:#b3470a"""
DARK = """--fg:#e6edf3;--soft:#9198a1;--grid:#30363d;--run:#56b4e9;--bad:#ff7b72;
--backoff:#4a6074;--handler:#bc8cff;--order:#e6a817;--emitted:#2fd6a2;--wall:#ff8a4c"""


def style_sheet(selector: str, rules: str) -> str:
    """The colors, as variables of what this CSS selector matches, and then the rules."""
    return f"\n{selector}{{{LIGHT}}}\n@media (prefers-color-scheme:dark){{{selector}{{{DARK}}}}}\n{rules}"


# On a narrow screen the drawing shrinks, so its text grows
STYLE = "\n.timeline{max-width:100%;height:auto}" + style_sheet(
    ".timeline",
    """\
.timeline text{font:13px system-ui,sans-serif;fill:var(--fg)}
.timeline .title{font-size:16px;font-weight:650}
.timeline .name{font-size:14px;font-weight:600}
.timeline .label{font-family:ui-monospace,monospace}
.timeline .soft{fill:var(--soft);font-size:12px}
.timeline .wall-name{fill:var(--wall);font-size:12px}
.timeline line{stroke:var(--grid)}
.timeline .slot,.timeline .consumer{stroke:var(--soft);stroke-width:2;stroke-dasharray:2 4}
.timeline .run{fill:var(--run)}
.timeline .failed{fill:var(--bad)}
.timeline .late{fill:var(--bad);fill-opacity:.55}
.timeline .cancelled{fill:none;stroke:var(--bad);stroke-width:1.5}
.timeline .gate{stroke:var(--backoff);stroke-width:2;stroke-dasharray:6 3}
.timeline .backoff{fill:var(--backoff)}
.timeline .handler{fill:var(--handler)}
.timeline .order{fill:var(--order);fill-opacity:.5}
.timeline .emitted{fill:var(--emitted)}
.timeline .wall{stroke:var(--wall);stroke-width:2;stroke-dasharray:6 4}
.timeline .cross{stroke:var(--bad);stroke-width:2;fill:none}
@media (max-width:520px){.timeline text,.timeline .soft,.timeline .wall-name{font-size:17px}
.timeline .title,.timeline .name{font-size:20px}}
""",
)

# Half the heights of bars
THICK, THIN = 7, 3


def escaped(content: str) -> str:
    """Text of a document. XML has no control characters and no lone surrogates, not even as references."""
    return escape(printable(content), {'"': "&quot;"})


def text(x: float, y: float, content: str, look: str = "", anchor: str = "start") -> str:
    """A line of text. `look` is a class of the style sheet."""
    return f'<text class="{look}" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escaped(content)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, look: str) -> str:
    """A straight line."""
    return f'<line class="{look}" x1="{x1:.1f}" y1="{y1:g}" x2="{x2:.1f}" y2="{y2:g}"/>'


def bar(look: str, start: float, end: float, y: float) -> str:
    """A bar around the height `y`. Time without work is a thin bar or a dotted line."""
    if look in {"slot", "gate", "consumer"}:
        return line(start, y, end, y, look)
    half = THIN if look == "backoff" else THICK
    width = max(end - start, 1.5)
    return f'<rect class="{look}" x="{start:.1f}" y="{y - half:g}" width="{width:.1f}" height="{2 * half}" rx="2"/>'


def dot(x: float, y: float) -> str:
    """The mark of an output."""
    return f'<circle class="emitted" cx="{x:.1f}" cy="{y:g}" r="5"/>'


def cross(x: float, y: float) -> str:
    """The mark of an invocation that was cancelled."""
    return f'<path class="cross" d="M{x - 4:.1f} {y - 4:g}l8 8m0 -8l-8 8"/>'


def document(look: str, width: int, height: int, *, title: str, description: str, style: str, body: str) -> str:
    """An SVG document. A screen reader reads its title and description."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="{look}" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-labelledby="{look}-title {look}-description">\n'
        f'<title id="{look}-title">{escaped(title)}</title>\n'
        f'<desc id="{look}-description">{escaped(description)}</desc>\n'
        f"<style>{style}</style>\n{body}\n</svg>\n"
    )


def group(title: str, parts: list[str], look: str) -> str:
    """Parts with a title, which a browser shows for the pointer and reads aloud."""
    return f"<g class={quoteattr(look)}><title>{escaped(title)}</title>{''.join(parts)}</g>"
