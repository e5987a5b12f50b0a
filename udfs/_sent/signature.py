"""Signature: how many columns the user's function accepts."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from functools import partial
from typing import Any

from trio_asyncio_io.integration import name_of

__all__ = ["check_arity", "signature_of"]

WRAPPERS = "trio_asyncio_io."


def signature_of(function: Any) -> inspect.Signature | None:
    """The parameters of a function that is called with columns, without annotations and values of defaults.

    A policy or an adapter passes all arguments on to its function, whose parameters these are then. None if they
    cannot be read.

    Raises:
        TypeError: It is a `partial` that binds a parameter in front of one for a column by keyword.
    """
    while type(function).__module__.startswith(WRAPPERS) and hasattr(function, "function"):
        function = function.function
    try:
        # A decorator may pass on other arguments than it gets, so these are its own parameters
        found = inspect.signature(getattr(function, "invoke", function), follow_wrapped=False)
    except (TypeError, ValueError, NameError):  # Python 3.14 evaluates annotations, which may be for type checkers only
        return None
    if isinstance(function, partial):
        _check_partial(function, found)
    empty = inspect.Parameter.empty
    parameters = [
        each.replace(annotation=empty, default=each.default if each.default is empty else None)
        for each in found.parameters.values()
    ]
    return inspect.Signature(parameters)


def _check_partial(function: partial[Any], found: inspect.Signature) -> None:
    """Check that the parameters behind those that a `partial` binds by keyword can still be given by position."""
    before = inspect.signature(function.func, follow_wrapped=False).parameters
    order = list(before)
    behind = [
        each.name
        for each in found.parameters.values()
        if each.kind is each.KEYWORD_ONLY and each.default is each.empty
        if each.name in before and before[each.name].kind is each.POSITIONAL_OR_KEYWORD
    ]
    if behind:
        names = ", ".join(behind)
        bound = ", ".join(each for each in order[: order.index(behind[0])] if each in function.keywords)
        raise TypeError(
            f"{name_of(function)} takes {names} by keyword, because the partial binds {bound} by keyword, and columns "
            f"are passed by position: bind {bound} by position, or declare {bound} behind {names}"
        )


def check_arity(name: str, signature: inspect.Signature | None, columns: Sequence[object]) -> None:
    """Check that a function can be called with a value of each of these columns.

    Args:
        name: The name of the function.
        signature: Its parameters, or None.
        columns: The names of the columns; in a worker, which does not know these, their types.

    Raises:
        TypeError: The function takes another number of columns, or there are none.
    """
    if not columns:
        raise TypeError(f"{name} needs at least one column: call it with columns or names of columns")
    if signature is None:
        return
    try:
        signature.bind(*columns)
    except TypeError:
        raise TypeError(_refusal(name, signature, columns)) from None


def _refusal(name: str, signature: inspect.Signature, columns: Sequence[object]) -> str:
    parameters = signature.parameters.values()
    keywords = [each.name for each in parameters if each.kind is each.KEYWORD_ONLY and each.default is each.empty]
    if keywords:
        names = ", ".join(keywords)
        return f"{name} takes {names} by keyword, and columns are passed by position: remove the * from its parameters"
    inputs = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    least = sum(each.default is each.empty for each in inputs)
    most = len(inputs)
    if any(each.kind is each.VAR_POSITIONAL for each in parameters):
        number = f"at least {least}"
    else:
        number = str(most) if least == most else f"{least} to {most}"
    names = ", ".join(each.name for each in inputs)
    given = ", ".join(map(str, columns))
    return (
        f"{name} takes {number} input{'' if number == '1' else 's'}{names and f' ({names})'}, "
        f"got {len(columns)} column{'' if len(columns) == 1 else 's'} ({given}): "
        "give one column for each parameter"
    )
