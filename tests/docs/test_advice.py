"""The examples follow the advice of the pages."""

from __future__ import annotations

import ast
from pathlib import Path

SCRIPTS = sorted(Path(__file__).parents[2].glob("docs/examples/*.py"))
STRATEGIES = {"ExponentialBackoff", "FixedDelay"}


def strategies_in(script: Path) -> list[ast.Call]:
    calls = [node for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
    return [call for call in calls if isinstance(call.func, ast.Name) and call.func.id in STRATEGIES]


def test_examples_retry_transient_errors_or_those_of_a_named_predicate() -> None:
    """Readers copy the retry of an example, and one on every exception repeats a 401 and a bug."""
    assert any(map(strategies_in, SCRIPTS))
    retried = {
        f"{script.name}: {ast.unparse(each.value)}"
        for script in SCRIPTS
        for call in strategies_in(script)
        for each in call.keywords
        if each.arg == "retry_on" and not ast.unparse(each.value).startswith(("transient", "is_"))
    }
    assert retried == set()
