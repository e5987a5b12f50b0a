"""Mutants of a module: the module with one small change that its tests should notice."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

_BOUNDARIES = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
_OPPOSITES = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_ARITHMETIC = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}
_EXTREMES = {"min": "max", "max": "min"}
_LENGTH = 60  # characters of code in a name


@dataclass(frozen=True)
class Mutant:
    """A mutant.

    Attributes:
        path: The module.
        name: The function and the change. It stays the same when lines move.
        line: Of the change, from 1.
        write: Returns the changed module.
    """

    path: Path
    name: str
    line: int
    write: Callable[[], str]

    @property
    def source(self) -> str:
        """The changed module. It takes a while, so only that of a mutant of the sample is written."""
        return self.write()

    def __str__(self) -> str:
        return f"{self.path}: {self.name}"


def mutants_of(path: Path) -> list[Mutant]:
    """All mutants of a module, in the order of its lines."""
    tree = ast.parse(path.read_text())
    seen: Counter[str] = Counter()
    found = []
    for scope, owner, field, position, node in _places(tree, ""):
        for changed in _of_statement(node) if isinstance(node, ast.stmt) else _of_expression(node):
            name = f"{scope}: {_code(node)} -> {_code(changed)}"
            seen[name] += 1
            write = partial(_write, tree, partial(_put, owner, field, position), node, changed)
            number = f" ({seen[name]})" if seen[name] > 1 else ""
            found.append(Mutant(path, name + number, node.lineno, write))
    return found


def _places(owner: ast.AST, scope: str) -> Iterator[tuple[str, ast.AST, str, int | None, ast.expr | ast.stmt]]:
    """The nodes that may change: their scope, and where they are. Without annotations, decorators and docstrings."""
    for field, value in ast.iter_fields(owner):
        if field in {"annotation", "returns", "decorator_list"}:
            continue
        nodes = value if isinstance(value, list) else [value]
        for position, node in enumerate(nodes):
            if not isinstance(node, ast.AST) or (field == "body" and _is_docstring(node)):
                continue
            if isinstance(node, ast.expr | ast.stmt):
                yield scope, owner, field, position if isinstance(value, list) else None, node
            is_scope = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            yield from _places(node, f"{scope}.{node.name}".lstrip(".") if is_scope else scope)


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _write(tree: ast.Module, put: Callable[[ast.AST], None], node: ast.AST, changed: ast.AST) -> str:
    put(changed)
    source = ast.unparse(ast.fix_missing_locations(tree))
    put(node)
    return source


def _put(owner: ast.AST, field: str, position: int | None, node: ast.AST) -> None:
    if position is None:
        setattr(owner, field, node)
    else:
        getattr(owner, field)[position] = node


def _of_expression(node: ast.expr) -> Iterator[ast.AST]:
    match node:
        case ast.Compare(left, [operator], right):
            changed = _BOUNDARIES.get(type(operator)) or _OPPOSITES[type(operator)]
            yield ast.Compare(left, [changed()], right)
        case ast.BoolOp(operator, values):
            for left_out in range(len(values)):
                rest = values[:left_out] + values[left_out + 1 :]
                yield rest[0] if len(rest) == 1 else ast.BoolOp(operator, rest)
        case ast.UnaryOp(ast.Not(), operand):
            yield operand
        case ast.BinOp(left, operator, right) if type(operator) in _ARITHMETIC:
            yield ast.BinOp(left, _ARITHMETIC[type(operator)](), right)
        case ast.Constant(bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(int(value) | float(value)):
            yield ast.Constant(value + 1)
        case ast.Call(ast.Name(name), arguments, keywords) if name in _EXTREMES:
            yield ast.Call(ast.Name(_EXTREMES[name], ast.Load()), arguments, keywords)


def _of_statement(node: ast.stmt) -> Iterator[ast.AST]:
    match node:
        case ast.If(_, body, orelse):
            yield ast.If(ast.Constant(value=True), body, orelse)
            yield ast.If(ast.Constant(value=False), body, orelse)
        case ast.Return(ast.expr() as value) if not isinstance(value, ast.Constant):
            yield ast.Return(ast.Constant(None))
        case ast.Raise() | ast.AugAssign() | ast.Expr(ast.Call()) | ast.Assign([ast.Attribute() | ast.Subscript()]):
            yield ast.Pass()


def _code(node: ast.AST) -> str:
    code = ast.unparse(node).partition("\n")[0]
    return code if len(code) <= _LENGTH else f"{code[:_LENGTH]}…"
