"""Every example of README.md and docs/*.md does what its page says.

    ```python       an example: it is run
    ```text         after a line that ends in "prints:", exactly what the example above it prints
    <!-- real clock -->   anywhere in a section: its examples use threads or sockets
    <!-- remote session -->   the same: they stand for themselves, and tests/connect runs them

The examples before the first `##` heading are the page's set-up. Those of a section go on from them and from
each other. `await`, `async with` and `async for` may stand at the top, as in `python -m trio`; such examples run on
a virtual clock unless their section says otherwise. A DataFrame that is a statement of its own is collected, and
`async def test_...(autojump_clock)` is run, as pytest-trio would.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SERVICE = "http://127.0.0.1:8000"

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^## ", re.MULTILINE)
PRINTS = re.compile(r"prints:\n\n\Z")


@dataclass(frozen=True, slots=True)
class Example:
    """A block of Python.

    Attributes:
        code: Its text.
        line: Where it begins in its page, so that errors point there.
        output: What it must print, or None.
    """

    code: str
    line: int
    output: str | None = None


@dataclass(frozen=True, slots=True)
class Section:
    """What runs together: the examples of a section, after those of the page's set-up."""

    page: Path
    title: str
    is_real_time: bool
    is_remote: bool = field(default=False, kw_only=True)
    examples: list[Example] = field(default_factory=list)

    @property
    def needs_spark(self) -> bool:
        return any("udfs" in each.code or "pyspark" in each.code for each in self.examples)

    def __str__(self) -> str:
        return f"{self.page.stem}: {self.title}"

    def run(self, names: dict[str, Any], service: str) -> None:
        """Run the examples, one after the other.

        Raises:
            Exception: The example's own; its traceback names the page and the line.
            AssertionError: It printed something else than its page says.
        """
        namespace = {"__name__": "__main__", **names}
        for example in self.examples:
            printed = self.run_one(example, namespace, service)
            assert example.output is None or printed == example.output

    def run_one(self, example: Example, namespace: dict[str, Any], service: str) -> str:
        source = "\n" * (example.line - 1) + example.code.replace(SERVICE, service)
        before = set(namespace)
        with redirect_stdout(StringIO()) as printed:
            for code in _compiled(source, str(self.page)):
                self._result(eval(code, namespace))
            for name in namespace.keys() - before:
                if name.startswith("test_"):
                    self._result(namespace[name](autojump_clock=None))
        return printed.getvalue()

    def _result(self, value: Any) -> None:
        if inspect.iscoroutine(value):
            clock = None if self.is_real_time else trio.testing.MockClock(autojump_threshold=0)
            trio.run(_awaited, value, clock=clock)
        elif hasattr(value, "collect"):
            value.collect()


def sections(page: Path) -> Iterator[Section]:
    """The sections of a page that have examples."""
    text = page.read_text(encoding="utf-8")
    starts = [0, *(match.start() for match in HEADING.finditer(text)), len(text)]
    parts = [text[start:end] for start, end in pairwise(starts)]
    lines = [text.count("\n", 0, start) for start in starts]
    setup = _examples(parts[0], 0)
    if setup and len(parts) == 1:
        yield Section(page, "set-up", "<!-- real clock -->" in parts[0], setup)
    for part, line in zip(parts[1:], lines[1:], strict=False):
        if found := _examples(part, line):
            title = part.splitlines()[0].removeprefix("## ")
            is_remote = "<!-- remote session -->" in part
            examples = found if is_remote else [*setup, *found]
            yield Section(page, title, "<!-- real clock -->" in part, examples, is_remote=is_remote)


def _examples(text: str, line: int) -> list[Example]:
    found: list[Example] = []
    for fence in FENCE.finditer(text):
        language, body = fence.groups()
        if language == "python":
            found.append(Example(body, line + text.count("\n", 0, fence.start()) + 2))
        elif language == "text" and PRINTS.search(text[: fence.start()]):
            last = found.pop()
            found.append(Example(last.code, last.line, body))
    return found


def _compiled(source: str, filename: str) -> Iterator[Any]:
    """A code object for each statement, so that an expression has a value."""
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    for statement in ast.parse(source, filename).body:
        if isinstance(statement, ast.Expr):
            yield compile(ast.Expression(statement.value), filename, "eval", flags)
        else:
            yield compile(ast.Module([statement], type_ignores=[]), filename, "exec", flags)


async def _awaited(coroutine: Any) -> Any:
    return await coroutine


SECTIONS = [section for page in PAGES for section in sections(page)]


@pytest.mark.parametrize("section", [each for each in SECTIONS if not each.needs_spark], ids=str)
def test_the_examples_of_a_section_run(section: Section, service: str) -> None:
    section.run({}, service)


@pytest.mark.spark
@pytest.mark.parametrize("section", [each for each in SECTIONS if each.needs_spark and not each.is_remote], ids=str)
def test_the_examples_of_a_section_run_on_spark(section: Section, service: str, lent: dict[str, Any]) -> None:
    section.run(lent if section.page.name == "README.md" else {}, service)
