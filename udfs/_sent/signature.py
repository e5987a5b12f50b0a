"""The parameters of the user's function, and how many columns it accepts."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from trio_asyncio_io.integration import name_of

WRAPPERS = "trio_asyncio_io."

# Annotations may contain names that exist only for type checkers. Python 3.14 evaluates them in `signature`
_ANNOTATIONS: dict[str, Any] = {}
if sys.version_info >= (3, 14):
    _ANNOTATIONS["annotation_format"] = import_module("annotationlib").Format.STRING


def signature_of(function: Any, *, follow_wrapped: bool = False) -> inspect.Signature | None:
    """The parameters of a function that is called with columns, without annotations and values of defaults.

    A policy or an adapter passes all arguments on to its function, whose parameters these are then. None if they
    cannot be read.

    Args:
        function: An async callable or an `AsyncFunction`.
        follow_wrapped: Whether the parameters are those of the function below its decorators, which may pass on other
            arguments than they get.
    """
    while type(function).__module__.startswith(WRAPPERS) and hasattr(function, "function"):
        function = function.function
    invoke = getattr(function, "invoke", function)
    try:
        found = inspect.signature(invoke, follow_wrapped=follow_wrapped, **_ANNOTATIONS)
    except (TypeError, ValueError):
        return None
    empty = inspect.Parameter.empty
    parameters = [
        each.replace(annotation=empty, default=each.default if each.default is empty else None)
        for each in found.parameters.values()
    ]
    return inspect.Signature(parameters)


def parameter_names(function: Any) -> list[str]:
    """The names of the function's parameters, which are its input columns by default.

    Excludes optional keywords and parameters bound by a `partial`.

    Raises:
        TypeError: The function has no signature, or no parameters, or any number of them.
    """
    signature = signature_of(function, follow_wrapped=True)
    found = () if signature is None else signature.parameters.values()
    # A keyword that a partial binds is one with a default
    parameters = [each for each in found if each.kind is not each.KEYWORD_ONLY or each.default is each.empty]
    if not parameters or any(each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD) for each in parameters):
        raise TypeError(f"cannot infer the input columns from the parameters of {name_of(function)}: give inputs=[...]")
    return [each.name for each in parameters]


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
        return (
            f"{name} takes {names} by keyword, and columns are passed by position: remove the * from its parameters; a "
            f"partial must bind by position what is in front of {names}"
        )
    shown = str(signature).replace("=None", "=...")
    given = ", ".join(map(str, columns))
    return (
        f"{name} takes {shown}, got {len(columns)} column{'' if len(columns) == 1 else 's'} ({given}): give one column "
        "for each parameter"
    )
