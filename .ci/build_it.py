"""The exercises and the staircase of docs/tutorial/build-it.md, for cog."""

import ast
import tokenize
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "trio_asyncio_io"
HEART = ROOT / "docs" / "examples" / "heart.py"
EXERCISES = ROOT / "docs" / "examples" / "exercises.toml"
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)

# Modules and folders -> what they add. Those of the first entry are used by the heart, too
STAIRS = {
    "_core/queue _core/elements _core/snapshot _core/parameters": (
        "**The heart's own ground**: the orders, the elements, the snapshot."
    ),
    "_operator/operator _operator/lifetime _operator/worker _operator/ends _operator/attempts _operator/feeder "
    "_operator/results _operator/tasks _operator/function _operator/__init__ _core/ledger _core/scheduler "
    "_core/deadlines": (
        "**Speed, `put` and interrupts.** Workers that make many calls each, outputs in chunks, one account of "
        "all numbers. Callers may put elements. Ctrl-C between any two steps loses nothing. Calls that never wait let "
        "other tasks run. A retry keeps its context variables."
    ),
    "_operator/stream _operator/signatures __init__ _core/__init__ _core/options _values/__init__ "
    "_values/checks _values/public": (
        "**Arguments that are checked**: an error names the parameter, its value and what to do."
    ),
    "_operator/errors _values/describe _values/exceptions": (
        "**Errors that explain themselves**: a note names the element and the attempt, and errors that are raised "
        "while calls unwind are kept."
    ),
    "_core/retry _core/reading": (
        "**Strategies of retries**: backoffs with jitter, `Retry-After` in all its forms, a budget for all records, a "
        "timeout for each attempt."
    ),
    "_core/dead_letter": "**Dead letters**: a failed record leaves through a channel of its own.",
    "_core/groups": "**Groups**: one call for several records, and halves of it after a failure.",
    "_operator/gates _core/gate _core/admission _core/automatic _core/refusals gates": (
        "**Gates**: rates, adaptive limits, circuit breakers, budgets and limits for each key hold calls back, before "
        "their deadlines begin."
    ),
    "_account _core/observation _operator/cpu": (
        "**Statistics and `explain`**: where each second of each slot went, and which change would help."
    ),
    "_core/observer _watch trace report opentelemetry progress": (
        "**Observers**: a hook at each step of a record, and a trace, a report, metrics and a progress display that "
        "use them."
    ),
    "_operator/sharing _operator/definition _operator/calls policies adapters blocking": (
        "**Functions around a function**: caches, single flight, hedges, threads, asyncio and callbacks, with calls "
        "that several records share."
    ),
    "checkpoints _files": "**Durable checkpoints**: a snapshot in a file, while the operator runs.",
    "rehearsal": "**Forecasts**: the scheduler on simulated calls, without tasks.",
    "testing queues integration": (
        "**Tools**: scripted functions, the queues with a bound, operators inside other runtimes."
    ),
}


def exercises() -> str:
    """The exercises of `exercises.toml`, with their solutions."""
    return "\n".join(_exercise(number, each) for number, each in enumerate(_all_exercises(), 1))


def _all_exercises() -> list[dict[str, str]]:
    found: list[dict[str, str]] = tomllib.loads(EXERCISES.read_text(encoding="utf-8"))["exercise"]
    return [{key: text.strip("\n") for key, text in each.items()} for each in found]


def _exercise(number: int, each: dict[str, str]) -> str:
    change = "\n".join([*_marked("-", each["line"]), *_marked("+", each["instead"])])
    return (
        f"**{number}.** {each['question']} ([{each['script']}](../examples/{each['script']}))\n\n"
        f"```diff\n{change}\n```\n\n"
        f"<details markdown><summary>What happens</summary>\n\n{each['answer']}\n\n</details>\n"
    )


def _marked(mark: str, lines: str) -> list[str]:
    return [f"{mark} {line}" for line in lines.splitlines()]


def staircase() -> str:
    """What each part of the package adds to the heart, and its lines."""
    rows = ["| part | lines of code |\n|---|---:|"]
    rows.append(f"| **`heart.py`**, with its demonstration | {lines_of([HEART]):,} |")
    rows += [f"| {adds} | {lines_of(modules_of(names)):,} |" for names, adds in STAIRS.items()]
    rows.append(f"| **together**, without `heart.py` | {lines_of(PACKAGE.rglob('*.py')):,} |")
    return "\n".join(rows)


def modules_of(names: str) -> Iterator[Path]:
    """The modules with these names, and those in these folders."""
    for name in names.split():
        folder = PACKAGE / name
        yield from sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]


def lines_of(paths: Iterable[Path]) -> int:
    """The lines that are neither blank nor only a comment nor part of a docstring."""
    return sum(len(_code(path) - _docstrings(path)) for path in paths)


def _code(path: Path) -> set[int]:
    without = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING}
    with path.open("rb") as file:
        tokens = [each for each in tokenize.tokenize(file.readline) if each.type not in without and each.string]
    return {line for token in tokens for line in range(token.start[0], token.end[0] + 1)}


def _docstrings(path: Path) -> set[int]:
    lines: set[int] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
            lines |= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return lines
