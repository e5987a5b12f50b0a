"""Only the ledger writes to its attributes, its counters and its deques."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import trio_asyncio_io
from trio_asyncio_io._account.statistics import Counts
from trio_asyncio_io._core.ledger import Ledger
from trio_asyncio_io._core.queue import InputOrder

PACKAGE = Path(trio_asyncio_io.__file__).parent
OTHERS = sorted({*PACKAGE.rglob("*.py")} - {PACKAGE / "_core" / "ledger.py"})

ATTRIBUTES = {*vars(Ledger(InputOrder(), 1)), *Counts.__slots__}
DEQUES = {"backlog", "jobs", "leaving"}
MUTATORS = {"append", "appendleft", "clear", "extend", "extendleft", "insert", "pop", "popleft", "remove", "rotate"}


def name_of(node: ast.expr) -> str:
    """The last name of an expression such as `self._ledger`."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def writes(tree: ast.AST) -> Iterator[str]:
    """The targets that belong to a ledger or to its counters, and the calls that change one of its deques."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
            is_of_ledger = name_of(node.value).lstrip("_") in {"counters", "ledger"}
            if is_of_ledger and node.attr in ATTRIBUTES:
                yield ast.unparse(node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            is_of_deque = name_of(node.func.value) in DEQUES
            if is_of_deque and node.func.attr in MUTATORS:
                yield ast.unparse(node.func)


def test_no_other_file_writes_to_the_ledger() -> None:
    found = {path.name: list(writes(ast.parse(path.read_text()))) for path in OTHERS}
    assert {name: writes for name, writes in found.items() if writes} == {}


@pytest.mark.parametrize(
    "statement",
    [
        "self._counters.retried += 1",
        "ledger.counters.failed = 0",
        "self._ledger.input_ended = True",
        "del self._ledger.jobs",
        "backlog.popleft()",
        "self._ledger.backlog.append((element, None))",
    ],
)
def test_a_write_is_found(statement: str) -> None:
    assert list(writes(ast.parse(statement))) != []
