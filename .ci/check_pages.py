"""A linter for the documentation: prints each finding as `file:line: what is wrong`, and exits with 1 if there is one.

It checks links, examples, marks of figures, the length of sentences, and retired words in all files.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
MAX_WORDS = 35  # of a sentence, so that nobody has to read it twice
MAX_COLUMNS = 88  # of a line of Python, so that a page shows it whole

# Pages with sentences of any length: those written from messages and measurements
UNLIMITED = ("reference/errors.md", "design/benchmarks.md")

# Folders of docs that only the site has: `.ci/documents.py` writes them, and git ignores them
ONLY_BUILT = ("maintain",)

# A retired word as a pattern, and what to write instead. The glossary and this file name what they refuse
RETIRED = {
    r"\b(?:its|their|his|whose|one's|own|a|the|by|take|takes|of|next) turns?\b": "place in the output order, lock",
    r"\bso many as\b": "as many as",
    r"\ball the same\b": "nevertheless, anyway",
}
RETIRED_WORDS = re.compile("|".join(f"(?:{pattern})" for pattern in RETIRED))
SOURCES = ("trio_asyncio_io", "udfs", "benchmarks", "tests", "docs", ".ci")
SUFFIXES = {".py", ".md", ".toml", ".out", ""}
EXEMPT = {DOCS / "reference" / "glossary.md", Path(__file__)}

LINK = re.compile(r"!?\[([^\]]*)\]\(([^)\s]+)\)")
DIRECTIVE = re.compile(r"^::: ([\w.]+)$", re.MULTILINE)  # the site writes the docstring of this name there
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INCLUDED = re.compile(r"<!-- \[\[\[cog .*?\]\]\] -->\n.*?<!-- \[\[\[end\]\]\] -->", re.DOTALL)
# Comments, code, headings, rows of tables, descriptions of pictures
NOT_PROSE = re.compile(
    r"<!--.*?-->|<table>.*?</table>|^```.*?^```$|^ {4}.*?$|^#.*?$|^\|.*?$|!\[[^\]]*\]", re.MULTILINE | re.DOTALL
)
BLOCK = re.compile(r"\n\s*\n|\n(?=\s*(?:[*-]|\d+\.) )")
SENTENCE = re.compile(r"(?<=[.!?])[*_)\"”]*\s+")


def main() -> int:
    """Print all findings.

    Returns:
        The exit code.
    """
    pages = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]
    findings = [finding for page in pages for finding in _of_page(page)]
    findings += [finding for path in _sources() for finding in _retired_words(path)]
    findings += _unused_examples(pages)
    for finding in findings:
        print(finding)
    return 1 if findings else 0


def _of_page(page: Path) -> Iterator[str]:
    text = page.read_text(encoding="utf-8")
    yield from _links(page, text)
    yield from _python(page, text)
    yield from _marks(page, text)
    if not (page.is_relative_to(DOCS) and page.relative_to(DOCS).as_posix().startswith(UNLIMITED)):
        yield from _long_sentences(page, text)


def _links(page: Path, text: str) -> Iterator[str]:
    for found in LINK.finditer(FENCE.sub(_blank, text)):
        link = found[2]
        if "://" in link:
            continue
        path, _, fragment = link.partition("#")
        target = page.parent / path if path else page
        if not target.exists():
            yield _finding(page, text, found.start(), f"{link} does not exist")
        elif fragment and target.suffix == ".md" and fragment not in _anchors(target):
            yield _finding(page, text, found.start(), f"{link} has no such heading")
        elif page.is_relative_to(DOCS) and not target.resolve().is_relative_to(DOCS):
            yield _finding(page, text, found.start(), f"{link} leaves docs, which is all that the site has")
        elif _is_only_built(target) and not _is_only_built(page):
            yield _finding(page, text, found.start(), f"{link} is not in git, so a code host does not have it")
        elif page.name == "README.md" and found[0].startswith("!") and not target.resolve().is_relative_to(DOCS):
            yield _finding(page, text, found.start(), f"{link}: a package index shows only images of the site")


def _is_only_built(path: Path) -> bool:
    path = path.resolve()
    return path.is_relative_to(DOCS) and path.relative_to(DOCS).parts[0] in ONLY_BUILT


def _anchors(page: Path) -> set[str]:
    text = page.read_text(encoding="utf-8")
    headings = HEADING.findall(text)
    return set(DIRECTIVE.findall(text)) | {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings
    }


def _python(page: Path, text: str) -> Iterator[str]:
    for found in FENCE.finditer(INCLUDED.sub(_blank, text)):
        if found[1] == "python":
            yield _finding(page, text, found.start(), "Python that is not from docs/examples: nothing runs it")
    for found in FENCE.finditer(text):
        for line in found[2].splitlines() if found[1] == "python" else ():
            if len(line) > MAX_COLUMNS:
                yield _finding(page, text, found.start(), f"a line of Python is wider than {MAX_COLUMNS}: {line}")


def _long_sentences(page: Path, text: str) -> Iterator[str]:
    plain = re.sub(r"`[^`\n]+`", "code", LINK.sub(r"\1", NOT_PROSE.sub(_blank, text)))
    start = 0
    for block in [*BLOCK.finditer(plain), None]:
        end = len(plain) if block is None else block.start()
        for sentence in SENTENCE.split(" ".join(plain[start:end].split())):
            words = sum(any(map(str.isalnum, word)) for word in sentence.split())
            if words > MAX_WORDS:
                line = plain.count("\n", 0, start + len(plain[start:end]) - len(plain[start:end].lstrip())) + 1
                yield f"{_name(page)}:{line}: a sentence of {words} words, of at most {MAX_WORDS}: {sentence}"
        start = end if block is None else block.end()


def _marks(page: Path, text: str) -> Iterator[str]:
    for found in re.finditer(r"^(?:\|.*)?<!--figure", text, re.MULTILINE):
        yield _finding(page, text, found.start(), "a mark of a figure here breaks the paragraph or the table")


def _sources() -> Iterator[Path]:
    for source in SOURCES:
        for path in sorted((ROOT / source).rglob("*")):
            if path.is_file() and path.suffix in SUFFIXES and path not in EXEMPT and "__pycache__" not in path.parts:
                yield path
    yield from (path for path in sorted(ROOT.iterdir()) if path.is_file() and path.suffix in SUFFIXES)


def _retired_words(path: Path) -> Iterator[str]:
    text = path.read_text(encoding="utf-8", errors="replace").lower()
    for found in RETIRED_WORDS.finditer(text):
        [instead] = {write for pattern, write in RETIRED.items() if re.compile(pattern).match(text, found.start())}
        yield _finding(path, text, found.start(), f"{found[0]!r} is retired; write: {instead}")


def _unused_examples(pages: list[Path]) -> Iterator[str]:
    shown = {name for page in pages for name in re.findall(r'example\("(\w+\.py)"', page.read_text(encoding="utf-8"))}
    for path in sorted((DOCS / "examples").glob("*.py")):
        if path.name not in shown:
            yield f"{_name(path)}:1: no page shows this example"


def _blank(found: re.Match[str]) -> str:
    """As many lines as the match has."""
    return "\n" * found[0].count("\n")


def _finding(path: Path, text: str, position: int, what: str) -> str:
    return f"{_name(path)}:{text.count(chr(10), 0, position) + 1}: {what}"


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


if __name__ == "__main__":
    sys.exit(main())
