"""Every example in a docstring runs, or at least compiles."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import dedent
from types import ModuleType
from typing import Any

import pytest
import trio
import trio.testing  # noqa: F401 - for the examples

import trio_asyncio_io
import trio_asyncio_io.testing
from tests.docs.public import PUBLIC

# The names that an example may use without an import
GLOBALS = {
    **{name: getattr(trio_asyncio_io, name) for name in trio_asyncio_io.__all__},
    **{name: getattr(trio_asyncio_io.queues, name) for name in trio_asyncio_io.queues.__all__},
    **{name: getattr(trio_asyncio_io.testing, name) for name in trio_asyncio_io.testing.__all__},
    "trio": trio,
}
HEADING = re.compile(r"^Example:\n(.*?)(?=^\S|\Z)", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Docstring:
    """The docstring of a module, a class, a function or a method."""

    name: str
    text: str


def modules(package: ModuleType) -> Iterator[ModuleType]:
    yield package
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        yield importlib.import_module(found.name)


def docstrings(owner: Any, name: str, module: str) -> Iterator[Docstring]:
    if owner.__doc__:
        yield Docstring(name, inspect.cleandoc(owner.__doc__))
    for key, member in vars(owner).items():
        inner = member.fget if isinstance(member, property) else member
        if is_defined_in(owner, inner, module):
            yield from docstrings(inner, f"{name}.{key}", module)


def is_defined_in(owner: Any, inner: Any, module: str) -> bool:
    if not (inspect.isclass(inner) or inspect.isroutine(inner)):
        return False
    if isinstance(owner, ModuleType):
        return getattr(inner, "__module__", None) == module
    # The `__new__` of a named tuple has no name
    return str(getattr(inner, "__qualname__", "")).startswith(f"{owner.__qualname__}.")


def examples() -> Iterator[Docstring]:
    for module in modules(trio_asyncio_io):
        for docstring in docstrings(module, module.__name__, module.__name__):
            if "Example:" in docstring.text or ">>>" in docstring.text:
                yield docstring


EXAMPLES = {each.name: each.text for each in examples()}
SESSIONS = [name for name, text in EXAMPLES.items() if ">>>" in text]
SKETCHES = [name for name, text in EXAMPLES.items() if ">>>" not in text]


@pytest.mark.parametrize("name", SESSIONS)
def test_a_session_prints_what_it_shows(name: str) -> None:
    test = doctest.DocTestParser().get_doctest(EXAMPLES[name], dict(GLOBALS), name, None, 0)
    runner = doctest.DocTestRunner(verbose=False)
    failures: list[str] = []
    runner.run(test, out=failures.append)
    assert not failures, "".join(failures)


@pytest.mark.parametrize("name", SKETCHES)
def test_a_sketch_compiles(name: str) -> None:
    found = HEADING.search(EXAMPLES[name])
    assert found is not None
    compile(dedent(found.group(1)), name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def test_each_operator_has_an_example() -> None:
    for name in ("ordered_wait", "unordered_wait", "keyed_wait"):
        assert f"trio_asyncio_io.{name}" in EXAMPLES


# They pass keyword arguments on to a class of httpx or httpx2, which documents them
OPEN = {"udfs.http.client", "udfs.http.httpx2.client"}


def parameters_of(name: str) -> list[inspect.Parameter]:
    """The parameters that users pass: not those of exceptions, protocols, and classes that only the packages make."""
    public = PUBLIC[name]
    if inspect.isclass(public) and not is_described(public):
        return []
    return list(inspect.signature(public).parameters.values())


def is_described(public: Any) -> bool:
    return "\nArgs:\n" in (inspect.getdoc(public) or "")


def test_a_signature_names_every_keyword_argument() -> None:
    """`help` and the reference show each option with its default, and not `**options`."""
    open_ones = {
        name: each.name
        for name in PUBLIC.keys() - OPEN
        for each in parameters_of(name)
        if each.kind is each.VAR_KEYWORD
    }
    assert open_ones == {}


def test_every_parameter_is_described() -> None:
    missing = {}
    for name in PUBLIC:
        if name.startswith("udfs.http.httpx2."):  # these refer to the same names in `udfs.http`
            continue
        parameters = parameters_of(name)
        described = set(re.findall(r"^    (\w+): ", inspect.getdoc(PUBLIC[name]) or "", re.MULTILINE))
        if len(parameters) > 1 and (without := [each.name for each in parameters if each.name not in described]):
            missing[name] = without
    assert missing == {}


def test_each_parameter_has_a_description_of_its_own() -> None:
    """The reference lists each parameter, so "a, b: As in ..." has no place there."""
    shared = {}
    for name, public in PUBLIC.items():
        arguments = re.findall(r"^Args:\n((?:(?: .*)?\n)*)", f"{inspect.getdoc(public)}\n", re.MULTILINE) or [""]
        if found := re.findall(r"^    \w+, .*:.*$", arguments[0], re.MULTILINE):
            shared[name] = found
    assert shared == {}
