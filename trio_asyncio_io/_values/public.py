"""How public names appear to users: under the address of their public module, with all of their keyword arguments.

Pickles look up a class by the name of its module, and tracebacks show that name. With the public module, neither
depends on the file that defines the class.

A function that passes keyword arguments on takes `**options: Unpack[OptionsArguments]`. That is enough for a type
checker, but `help` would show neither their names nor their defaults. `list_keywords` adds both, from the classes that
define and describe them, and `check_keywords` checks the names that a caller has given.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches
from itertools import takewhile
from typing import Any, TypeVar, is_typeddict


def publish(namespace: Mapping[str, Any]) -> None:
    """Set the `__module__` of all names that a public module exports from its private modules.

    Args:
        namespace: The module's `globals()`, with `__all__`.
    """
    public = namespace["__name__"]
    for name in namespace["__all__"]:
        value = namespace[name]
        if "._" in getattr(value, "__module__", ""):
            value.__module__ = public


F = TypeVar("F", bound=Callable[..., Any])

_ARGS = re.compile(r"^Args:\n((?:(?: .*)?\n)*)", re.MULTILINE)
_ENTRY = re.compile(r"^    (\w+): .*\n(?:     .*\n)*", re.MULTILINE)


def check_keywords(function: Callable[..., Any], names: Collection[str], caller: str = "") -> None:
    """Check the names of keyword arguments that a public function or class passes on.

    Args:
        function: The function or class, whose signature lists them.
        names: The given ones.
        caller: The name in the message, if the user has called another function.

    Raises:
        TypeError: There is no such keyword argument. The message suggests the nearest one, or lists all.
    """
    parameters = inspect.signature(function).parameters.values()
    known = [each.name for each in parameters if each.kind is each.KEYWORD_ONLY]
    for name in names:
        if name not in known:
            nearest = [each for each in known if each.endswith(f"_{name}")] or get_close_matches(name, known, 1)
            hint = f"did you mean {nearest[0]!r}?" if nearest else f"use {', '.join(known)}"
            raise TypeError(f"{caller or function.__name__} got an unexpected keyword argument {name!r}: {hint}")


def list_keywords(arguments: type, *sources: Any) -> Callable[[F], F]:
    """Make a decorator that lists keyword arguments in the signature and the docstring of a function or a class.

    In the signature they replace `**options`, or whatever its name is. In the docstring, `share_descriptions` adds
    their text.

    Args:
        arguments: A `TypedDict`: the keyword arguments and their types, in this order.
        sources: Dataclasses with the defaults, functions with the same parameters, and a `TypedDict` that describes
            them. A keyword argument without a default in any of them has the default None.

    Returns:
        A decorator that returns the function or class itself.
    """

    def decorate(function: F) -> F:
        called = _called(function)
        called.__signature__ = _signature(called, arguments, sources)
        return share_descriptions(*sources)(function)

    return decorate


def typed_as(_: F) -> Callable[[Callable[..., Any]], F]:
    """Make a decorator that returns the function itself, to a type checker with the overloads of another function."""
    return lambda function: function  # type: ignore[return-value]


def share_descriptions(*sources: Any) -> Callable[[F], F]:
    """Make a decorator that completes the section `Args` in the docstring of a function or a class.

    Each parameter that the docstring does not describe gets the text of the first source that describes it. The order
    is the order of the signature. Other text in the section is for readers of the source, and is left out.

    Args:
        sources: Functions and classes whose docstrings have a section `Args`.

    Returns:
        A decorator that returns the function or class itself.
    """

    def decorate(function: F) -> F:
        if function.__doc__:  # none under `python -OO`
            known = {name: entry for source in reversed(sources) for name, entry in _entries(source.__doc__).items()}
            function.__doc__ = _described(inspect.cleandoc(function.__doc__), inspect.signature(function), known)
        return function

    return decorate


def _called(function: Any) -> Any:
    """The function that takes the arguments."""
    return function.__init__ if inspect.isclass(function) else function


def _signature(function: Any, arguments: type, sources: tuple[Any, ...]) -> inspect.Signature:
    signature = inspect.signature(function)
    given = takewhile(lambda each: each.kind is not each.VAR_KEYWORD, signature.parameters.values())
    own = [each for each in given if each.kind is not each.VAR_POSITIONAL]  # those take what is refused
    defaults = {name: value for source in reversed(sources) for name, value in _defaults(source).items()}
    listed = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=defaults.get(name),
            annotation=getattr(annotation, "__forward_arg__", annotation),
        )
        for name, annotation in arguments.__annotations__.items()
    ]
    return signature.replace(parameters=[*own, *listed])


def _defaults(source: Any) -> dict[str, Any]:
    parameters = () if is_typeddict(source) else inspect.signature(source).parameters.values()
    return {each.name: each.default for each in parameters if each.default is not each.empty}


def _described(text: str, signature: inspect.Signature, known: dict[str, str]) -> str:
    known = known | _entries(text)
    listed = "".join(known[name] for name in signature.parameters if name in known)
    return _ARGS.sub(lambda _: f"Args:\n{listed}\n", f"{text}\n").rstrip("\n")


def _entries(text: str | None) -> dict[str, str]:
    """The text of each parameter in the section `Args`."""
    found = _ARGS.search(f"{inspect.cleandoc(text)}\n") if text else None
    return {entry[1]: entry[0] for entry in _ENTRY.finditer(found[1])} if found else {}
