"""Prepares docstrings for the reference of the site: a Griffe extension, which mkdocs.yml names.

A sketch in `Example:` becomes a fence, and the public names in backquotes become links. Where `Args:` refers to the
options of another function, this becomes a sentence above the table. A function with `list_keywords` has the signature
that `help` shows, in place of an overload for each type of its outputs. One function, `udfs.ordered_wait`, describes
the options that all functions of `udfs` have in common. Members for other modules of their package, for Spark or for
Trio are left out.
"""

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import griffe

PAGES = Path(__file__).parents[1] / "docs" / "reference" / "api"
DIRECTIVE = re.compile(r"^::: ([\w.]+)$", re.MULTILINE)
# Public members that users do not need
HIDDEN = {
    "Auto.up_to",
    "AsyncPandasUDF.__init__",
    "AsyncPandasUDF.evalType",
    "AsyncPandasUDF.func",
    "AsyncPandasUDF.returnType",
    "BlockedLoop.after_io_wait",
    "BlockedLoop.after_run",
    "BlockedLoop.before_io_wait",
    "BlockedLoop.before_run",
    "Entry.__init__",
    "NotAsyncError.for_coroutine",
    "NotAsyncError.for_result",
    "Options.bound",
    "Results.__init__",
    "from_asyncio.wrapped",
    "from_callback.wrapped",
    "from_future.wrapped",
    "in_thread.wrapped",
}
# What the operator calls on each gate. `Gate` describes it
OF_GATES = {"delay", "started", "ended", "correct", "may_forget"}
EXAMPLE = re.compile(r"^Example:\n((?:(?: .*)?\n?)*)", re.MULTILINE)
# A line of `Args:` without the name of a parameter
REFERENCE = re.compile(r"^Args:\n((?:(?: .*)?\n)*?)    ((?:And|The) [^\n]*?)[,:.]*(?: and)?[:.]*\n", re.MULTILINE)
COMMON = "keyword arguments of `UDFArguments`"
TAG = re.compile(r"<(?=\w)(?=[^`]*(?:`[^`]*`[^`]*)*$)")  # outside of backquotes, Markdown would take it for HTML
NAME = re.compile(r"(?<![`\[])`([\w.]+)`(?!`)")


def documented() -> list[str]:
    """The addresses of all names in the reference, by page and by place."""
    pages = sorted(PAGES.glob("*.md"))
    return [name for page in pages for name in DIRECTIVE.findall(page.read_text(encoding="utf-8"))]


class Docstrings(griffe.Extension):
    """The extension."""

    def __init__(self) -> None:
        self._names = documented()

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of an object, and remove the members that users do not need."""
        if obj.docstring is not None:
            if isinstance(obj, (griffe.Function, griffe.Class)):
                _complete(obj, obj.docstring)
                _list_options(obj, obj.docstring)
            obj.docstring.value = self.prepared(obj.docstring.value, obj.path)
        if isinstance(obj, griffe.Class):
            hidden = {name for name in obj.members if f"{obj.name}.{name}" in HIDDEN}
            if "ConfiguredGate" in map(str, obj.bases):
                hidden |= OF_GATES & obj.members.keys()
            for name in hidden:
                del obj.members[name]

    def prepared(self, text: str, address: str) -> str:
        """The docstring of the object at this address."""
        text = REFERENCE.sub(_with_reference_above, f"{text}\n")
        parts, end = [], 0
        for found in EXAMPLE.finditer(text):
            parts += [self._linked(text[end : found.start()], address), _fenced(found[1])]
            end = found.end()
        return "".join([*parts, self._linked(text[end:], address)])

    def _linked(self, text: str, address: str) -> str:
        package = address.partition(".")[0]

        def link(found: re.Match[str]) -> str:
            fitting = [each for each in self._names if each == found[1] or each.endswith(f".{found[1]}")]
            fitting.sort(key=lambda each: not each.startswith(f"{package}."))
            return f"[{found[0]}][{fitting[0]}]" if fitting else found[0]

        lines, is_code = [], True  # indented lines before the first section are code
        for line in text.splitlines(keepends=True):
            is_code &= re.fullmatch(r"[A-Z]\w+:\n?", line) is None
            lines.append(line if is_code and line.startswith("    ") else NAME.sub(link, TAG.sub("&lt;", line)))
        return "".join(lines)


def _with_reference_above(found: re.Match[str]) -> str:
    described, reference = found.groups()
    begun = re.sub("^And", "those below, and", reference)
    sentence = f"The parameters are {begun[0].lower()}{begun[1:]}"
    if described:
        return f"{sentence}.\n\nArgs:\n{described}"
    describes_more = found.string.startswith("    ", found.end())
    return f"{sentence}, and those below.\n\nArgs:\n" if describes_more else f"{sentence}.\n"


def _complete(obj: griffe.Function | griffe.Class, docstring: griffe.Docstring) -> None:
    """Give what has parameters in common with another class the docstring that `help` shows."""
    if any(str(each.value).startswith("share_descriptions") for each in obj.decorators):
        docstring.value = inspect.getdoc(getattr(importlib.import_module(obj.module.path), obj.name)) or ""


def _list_options(obj: griffe.Function | griffe.Class, docstring: griffe.Docstring) -> None:
    """Give a function or class that passes options on the signature that `help` shows."""
    if not any(str(each.value).startswith("list_keywords") for each in obj.decorators):
        return
    shown = getattr(importlib.import_module(obj.module.path), obj.name)
    if COMMON in docstring.value:
        docstring.value = inspect.getdoc(shown) or ""
    function = obj.members["__init__"] if isinstance(obj, griffe.Class) else obj
    function.overloads = None
    parameters = inspect.signature(shown).parameters.values()
    function.parameters = griffe.Parameters(*map(_parameter, parameters))


def _parameter(each: inspect.Parameter) -> griffe.Parameter:
    default = None if each.default is each.empty else repr(each.default)
    kind = griffe.ParameterKind(each.kind.description)
    return griffe.Parameter(each.name, annotation=each.annotation, kind=kind, default=default)


def _fenced(code: str) -> str:
    if ">>> " in code:
        return f"Examples:\n{code}"
    return f"Examples:\n    ```python\n{code.rstrip()}\n    ```\n"
