"""Writes docs/reference/errors.md: the error messages of both packages that do not say themselves what to do.

Messages are read from the source. What to do is in `docs/reference/errors.toml`, or in the message itself.
"""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
# By heading: where its messages come from. A message belongs to the first heading that fits
AREAS = {
    "Adapters": r"trio_asyncio_io/adapters/",
    "Policies": r"trio_asyncio_io/policies/",
    "Files: checkpoints and the persistent cache": r"trio_asyncio_io/(checkpoints|_files/sqlite)",
    "Observers, traces and progress": (
        r"trio_asyncio_io/(_watch|blocking|opentelemetry|progress|report|trace)|udfs/progress"
    ),
    "Forecasts": r"trio_asyncio_io/rehearsal/",
    "The operator": r"trio_asyncio_io/",
    "HTTP columns": r"udfs/http_columns/",
    "The HTTP client": r"udfs/http/",
    "Carry-over": r"udfs/(_plan/stateful_query|_spark_thread/micro_batch)",
    "Spark": r"udfs/(?!demo/)",
}
# Functions that make an exception or its text
MAKERS = re.compile(r"\w*(Error|Exception|Timeout|Redirects|Protocol|InvalidURL|damaged|_error)|cls")
TEXTS = re.compile(r"_?problem_of\w*|too_large_text")
# A part of a message that states what to do
REMEDY = re.compile(r"[:;.] (?=[a-zA-Z`]+[ (])")
RANGE = re.compile(r" (?:must|takes|need|needs|does not fit)\b")


def tables() -> str:
    """The tables of the page."""
    remedies = remedies_of_the_page()
    lines = []
    for area, messages in by_area().items():
        with_remedies = [text for text in messages if remedies.get(text)]
        if not with_remedies:
            continue
        lines.append(f"\n## {area}\n\n| message | what to do |\n| --- | --- |")
        rows: dict[str, list[str]] = {}
        for text in sorted(with_remedies, key=lambda text: text.lstrip("… ").lower()):
            tick = "``" if "`" in text else "`"
            shown = f"{tick} {text} {tick}" if len(tick) > 1 else f"`{text}`"
            rows.setdefault(remedies[text], []).append(shown)
        for remedy, shown_texts in rows.items():
            row = ["<br>".join(shown_texts), remedy]
            lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |")
    return "\n".join(lines)


def says_what_to_do(text: str) -> bool:
    """Whether the message itself states a remedy, or what is allowed."""
    return bool(REMEDY.search(text) or RANGE.search(text))


def remedies_of_the_page() -> dict[str, str]:
    """What to do, by message."""
    return tomllib.loads((ROOT / "docs" / "reference" / "errors.toml").read_text(encoding="utf-8"))


def by_area() -> dict[str, set[str]]:
    """The messages with `…` for each part that varies, by heading."""
    found: dict[str, set[str]] = {area: set() for area in AREAS}
    for package in ("trio_asyncio_io", "udfs"):
        for path in sorted(ROOT.joinpath(package).rglob("*.py")):
            place = path.relative_to(ROOT).as_posix()
            area = next((area for area, pattern in AREAS.items() if re.match(pattern, place)), None)
            if area:
                found[area].update(_messages(ast.parse(path.read_text(encoding="utf-8"))))
    return found


def _messages(tree: ast.Module) -> Iterator[str]:
    values = {
        statement.targets[0].id: statement.value
        for statement in ast.walk(tree)
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)
    }
    for node in _expressions(tree):
        value = values.get(node.id, node) if isinstance(node, ast.Name) else node
        text = " ".join(_template(value, values).partition("\n")[0].split())
        if len(text.replace("…", "").split()) > 1 and not text.startswith("…: …"):
            yield text


def _expressions(tree: ast.Module) -> Iterator[ast.expr]:
    """The arguments of exceptions, and the texts of functions that make one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args:
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if MAKERS.fullmatch(name):
                yield node.args[0]
        if isinstance(node, ast.FunctionDef) and TEXTS.fullmatch(node.name):
            returns = (each.value for each in ast.walk(node) if isinstance(each, ast.Return))
            yield from (value for value in returns if value is not None)


def _template(node: ast.expr, values: dict[str, ast.expr]) -> str:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(_template(part, values) for part in parts)
        case ast.FormattedValue(value=ast.Name(id=name)) if isinstance(values.get(name), ast.Constant | ast.JoinedStr):
            return _template(values[name], values)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _template(left, values) + _template(right, values)
        case ast.IfExp(body=body):
            return _template(body, values)
    return "…"
