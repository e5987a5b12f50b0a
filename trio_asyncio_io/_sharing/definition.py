"""What a callable consists of, so that two definitions with one name can be compared, also after a pickle."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from functools import partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

__all__ = ["parts_of"]

_PLAIN = (bool, int, float, complex, str, bytes, type(None), CodeType)


def parts_of(value: Any, _seen: frozenset[int] = frozenset()) -> Any:
    """Something that is equal for equal definitions.

    A function consists of its code and the values that it refers to: defaults, closure, globals. What can be imported
    is its address. Objects of other types count as equal if their types are: most of them cannot be compared after a
    pickle.
    """
    if isinstance(value, _PLAIN):
        return type(value).__name__, value
    if id(value) in _seen:
        return None
    seen = _seen | {id(value)}
    return [_address(value), *(parts_of(each, seen) for each in _constituents(value))]


def _address(value: Any) -> Any:
    if isinstance(value, ModuleType):
        return value.__name__
    named = value if isinstance(value, type) or _can_be_imported(value) else type(value)
    return named.__module__, named.__qualname__


def _constituents(value: Any) -> Iterable[Any]:
    match value:
        case tuple() | list():
            return value
        case Mapping():
            return value.items()
        case partial():
            return value.func, value.args, value.keywords
        case MethodType():
            return value.__func__, value.__self__
        case FunctionType() if not _can_be_imported(value):
            return _referred(value)
    return ()


def _can_be_imported(value: Any) -> bool:
    if not isinstance(value, FunctionType) or value.__module__ == "__main__":
        return False
    return getattr(sys.modules.get(value.__module__), value.__qualname__, None) is value


def _referred(function: FunctionType) -> Iterable[Any]:
    """The code of a function, and the values that it refers to. A variable of its closure may have none yet."""
    code = function.__code__
    cells = [cell.cell_contents for cell in function.__closure__ or () if cell != type(cell)()]
    used = {name: function.__globals__[name] for name in code.co_names if name in function.__globals__}
    return code, function.__defaults__, function.__kwdefaults__, cells, used
