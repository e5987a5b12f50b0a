"""The tables of tests/explored as a table of docs/design/every-interleaving.md, for cog.

A table there is a list of tuples: schedules or steps, states, and a setting.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "tests" / "explored"


def tables() -> str:
    """The settings, schedules and states of each table."""
    rows = ["| tests | table | settings | schedules or steps | states |\n|---|---|---:|---:|---:|"]
    for module in sorted(FOLDER.glob("test_*.py")):
        for name, counts in tables_of(module.read_text(encoding="utf-8")):
            schedules, states = (sum(numbers) for numbers in zip(*counts, strict=True))
            title = name.replace("_", " ").lower()
            rows.append(f"| `{module.stem}` | {title} | {len(counts)} | {schedules:,} | {states:,} |")
    return "\n".join(rows)


def tables_of(source: str) -> Iterator[tuple[str, list[tuple[int, int]]]]:
    """The name of each table of a module, and its numbers."""
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.AnnAssign) and ast.unparse(statement.annotation) == "Table":
            assert isinstance(statement.target, ast.Name)
            assert isinstance(statement.value, ast.List)
            rows = [ast.literal_eval(ast.Tuple(each.elts[:2], ast.Load())) for each in statement.value.elts]
            yield statement.target.id, rows
