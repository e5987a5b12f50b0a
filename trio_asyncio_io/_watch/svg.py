"""SVG drawings: their document, and the colors of all views, for light and dark pages."""

from __future__ import annotations

from xml.sax.saxutils import escape

from .._values.describe import printable

# Color-blind safe (Okabe and Ito)
LIGHT = """--fg:#1f2328;--soft:#59636e;--grid:#d0d7de;--run:#0072b2;--bad:#c4372a;--backoff:#b5c7d6;--handler:#7a5195;
--order:#e69f00;--emitted:#009e73;--wall:#b3470a"""
DARK = """--fg:#e6edf3;--soft:#9198a1;--grid:#30363d;--run:#56b4e9;--bad:#ff7b72;
--backoff:#4a6074;--handler:#bc8cff;--order:#e6a817;--emitted:#2fd6a2;--wall:#ff8a4c"""


def style_sheet(selector: str, rules: str) -> str:
    """The colors, as variables of what this CSS selector matches, and then the rules."""
    return f"\n{selector}{{{LIGHT}}}\n@media (prefers-color-scheme:dark){{{selector}{{{DARK}}}}}\n{rules}"


def escaped(content: str) -> str:
    """Text of a document. XML has no control characters and no lone surrogates, not even as references."""
    return escape(printable(content), {'"': "&quot;"})


def document(look: str, width: int, height: int, *, title: str, description: str, style: str, body: str) -> str:
    """An SVG document. A screen reader reads its title and description."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="{look}" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-labelledby="{look}-title {look}-description">\n'
        f'<title id="{look}-title">{escaped(title)}</title>\n'
        f'<desc id="{look}-description">{escaped(description)}</desc>\n'
        f"<style>{style}</style>\n{body}\n</svg>\n"
    )
