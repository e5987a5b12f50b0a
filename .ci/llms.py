"""Writes docs/llms.txt: the pages of the site, for language models. The site has it at its root (https://llmstxt.org).

`just pages` runs this. With `--check`, which `just lint` runs, it fails if the file is outdated.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
FILE = DOCS / "llms.txt"
PROSE = re.compile(r"(?!\d+\. |\* )[\w*`\[]")  # how a paragraph begins that is no list


def text() -> str:
    """The contents of the file."""
    site = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    lines = [f"# {site['site_name']}\n\n> {site['site_description']}\n\n{_paragraphs(DOCS / 'index.md')[0]}\n"]
    for entry in site["nav"]:
        [(title, below)] = entry.items()
        if isinstance(below, list):
            lines.append(f"\n## {title}\n\n")
            lines += [_line(*page) for page in _pages(below)]
    return "".join(lines)


def _pages(entries: list[Any]) -> Iterator[tuple[str | None, str]]:
    """Title and path of each page; None for a page whose title is its heading."""
    for entry in entries:
        [(title, below)] = [(None, entry)] if isinstance(entry, str) else entry.items()
        if isinstance(below, list):
            yield from _pages(below)
        else:
            yield title, below


def _line(title: str | None, page: str) -> str:
    heading = re.search(r"^# (.+)$", (DOCS / page).read_text(encoding="utf-8"), re.MULTILINE)
    assert heading is not None, page
    paragraphs = _paragraphs(DOCS / page)
    sentence = re.match(r".+?[.:](?= |$)", paragraphs[0]) if paragraphs else None
    about = f": {sentence[0].rstrip(':')}" if sentence else ""
    return f"- [{title or heading[1]}]({page.removesuffix('.md')}.html){about}\n"


def _paragraphs(page: Path) -> list[str]:
    """The paragraphs of prose, without lists and tables, each in one line and without links and emphasis."""
    source = re.sub(r"```.*?```|<!--.*?-->", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    blocks = [" ".join(block.split()) for block in source.split("\n\n") if PROSE.match(block)]
    return [re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", block).replace("**", "") for block in blocks]


def main() -> None:
    """Write the file, or check it."""
    if "--check" not in sys.argv:
        FILE.write_text(text(), encoding="utf-8")
    elif not FILE.exists() or FILE.read_text(encoding="utf-8") != text():
        sys.exit("docs/llms.txt is outdated: run `just pages`")


if __name__ == "__main__":
    main()
