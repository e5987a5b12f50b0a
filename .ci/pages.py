"""Writes examples and documents into the pages. Cog runs this: see the recipe `pages` in the justfile.

A page includes an example with a comment, which rendered Markdown does not show:

    <!-- [[[cog example("operator_first.py")]]] -->
    <!-- [[[end]]] -->

Between the two lines, cog writes the script `docs/examples/operator_first.py` and its output, from the file
`operator_first.out`.
"""

import ast
import os
import re
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import cog

EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"


def example(script: str, *names: str, lines: str | None = None) -> None:
    """Write a script, or a part of it, and its output.

    Args:
        script: Its file name.
        names: The functions, classes, constants and methods ("Class.method") to show, in this order; "imports" are
            those from other packages than Python's own. Default: the whole script.
        lines: The lines of its output to show, counted from 1, such as "2" or "2-4"; "" shows none, None all.
    """
    path = EXAMPLES / script
    source = path.read_text(encoding="utf-8").rstrip()
    link = os.path.relpath(path, Path(cog.inFile).parent)
    cog.outl(f"[{script}]({Path(link).as_posix()}):\n")
    cog.outl(_fenced("python", _parts(source, names) if names else source))
    printed = _selected(path.with_suffix(".out"), lines)
    if printed:
        cog.outl("\nprints:\n\n" + _fenced("text", printed))


def _fenced(language: str, text: str) -> str:
    return f"```{language}\n{text}\n```"


def _parts(source: str, names: tuple[str, ...]) -> str:
    body, lines = ast.parse(source).body, source.splitlines()
    found = dict(_definitions(body, lines)) | {"imports": "\n".join(_imports(body, lines))}
    classes = [list(each) for _, each in groupby(names, key=lambda name: name.rpartition(".")[0] or name)]
    return "\n\n\n".join(_part(found, each) for each in classes)


def _imports(body: list[ast.stmt], lines: list[str]) -> Iterator[str]:
    for statement in body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            module = statement.module or "" if isinstance(statement, ast.ImportFrom) else statement.names[0].name
            if module.partition(".")[0] not in sys.stdlib_module_names:
                yield from lines[statement.lineno - 1 : statement.end_lineno]


def _definitions(body: list[ast.stmt], lines: list[str]) -> Iterator[tuple[str, str]]:
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name, first = statement.name, min(each.lineno for each in [statement, *statement.decorator_list])
        elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            name, first = statement.targets[0].id, statement.lineno
        else:
            continue
        yield name, "\n".join(lines[first - 1 : statement.end_lineno])
        if isinstance(statement, ast.ClassDef):
            yield from ((f"{name}.{method}", text) for method, text in _definitions(statement.body, lines))


def _part(found: dict[str, str], names: list[str]) -> str:
    """One definition, or methods of one class below its first line."""
    owner = names[0].rpartition(".")[0]
    if not owner:
        return found[names[0]]
    head = next(line for line in found[owner].splitlines() if line.startswith("class "))
    return "\n\n".join([f"{head}\n    ...", *(found[name] for name in names)])


def _selected(output: Path, lines: str | None) -> str:
    if lines == "" or (lines is None and not output.exists()):
        return ""
    printed = output.read_text(encoding="utf-8").splitlines()
    if lines is None:
        return "\n".join(printed)
    found = re.fullmatch(r"(\d+)(?:-(\d+))?", lines)
    assert found is not None, lines
    first, last = int(found[1]), int(found[2] or found[1])
    assert last <= len(printed), f"{output.name} has {len(printed)} lines, not {last}"
    return "\n".join(printed[first - 1 : last])
