"""Packed function: the user's function as bytes, which the driver sends to the workers."""

from __future__ import annotations

import hashlib
import inspect
import sys
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from pyspark import cloudpickle

from trio_asyncio_io.adapters import is_async

__all__ = ["PackedFunction", "dumped", "pack", "parameter_names"]

PATTERN = """\
Open clients, connections, locks and nurseries in the worker. Do not capture them on the driver:

    class Lookup(AsyncFunction):
        async def open(self):                 # once per Python worker process
            self.client = udfs.http.client()
        async def invoke(self, ip):           # once per row
            return (await self.client.get(f"http://service/{ip}")).text
        async def close(self):
            await self.client.aclose()
"""

# Annotations may contain names that only type checkers know. Python 3.14 evaluates them when `signature` reads them
_ANNOTATIONS: dict[str, Any] = {}
if sys.version_info >= (3, 14):
    _ANNOTATIONS["annotation_format"] = import_module("annotationlib").Format.STRING


@dataclass(frozen=True, slots=True)
class PackedFunction:
    """A function as bytes. Tasks of one process share one open instance of equal functions.

    Attributes:
        name: The name of the function in errors and columns.
        digest: The SHA-256 digest of `payload`. Equal functions have equal digests.
        payload: The pickle.
    """

    name: str
    digest: str
    payload: bytes

    def unpack(self) -> Any:
        """A new instance of the function."""
        return cloudpickle.loads(self.payload)


def pack(function: Any, label: str = "the function") -> PackedFunction:
    """Pickle a function.

    Args:
        function: An async callable or an `AsyncFunction`.
        label: The name of the parameter, for error messages.

    Raises:
        TypeError: The function is not async, or captures an object that cannot be sent. The message shows what to do.
    """
    name = name_of(function)
    if isinstance(function, type):
        raise TypeError(f"{label} must be an instance, got the class {name}: write {name}()")
    if not is_async(function):
        raise TypeError(
            f"{label} must be async, got {name}. Declare it with `async def`, or run a blocking function in threads: "
            f"trio_asyncio_io.adapters.in_thread({name})"
        )
    payload = dumped(function, f"{label} {name}")
    return PackedFunction(name, hashlib.sha256(payload).hexdigest(), payload)


def dumped(value: object, label: str) -> bytes:
    """Pickle a value.

    Raises:
        TypeError: The value captures an object that cannot be sent. The message names it, and shows what to do.
    """
    try:
        return bytes(cloudpickle.dumps(value))
    except Exception as error:
        culprits = _culprits(value)
        names = f" ({', '.join(culprits)})" if culprits else ""
        raise TypeError(
            f"{label} captures something{names} that cannot be sent to the workers: {error}\n{PATTERN}"
        ) from error


def name_of(function: Any) -> str:
    """The name of the function in errors and columns."""
    innermost = _innermost(function)
    return str(getattr(innermost, "__name__", type(innermost).__name__))


def parameter_names(function: Any) -> list[str]:
    """The names of the function's parameters, which are its input columns by default.

    Raises:
        TypeError: The function has no signature, or no parameters, or any number of them.
    """
    innermost = _innermost(function)
    try:
        parameters = inspect.signature(getattr(innermost, "invoke", innermost), **_ANNOTATIONS).parameters.values()
    except (TypeError, ValueError):
        parameters = ()  # type: ignore[assignment]
    names = [each.name for each in parameters if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]
    if not names or len(names) != len(list(parameters)):
        raise TypeError(f"cannot infer the input columns from the parameters of {name_of(function)}: give inputs=[...]")
    return names


def _innermost(function: Any) -> Any:
    """The user's function, without the policies around it."""
    while hasattr(function, "function"):
        function = function.function
    return function


def _culprits(function: Any) -> list[str]:
    """The captured objects that cannot be pickled, as "name: type"."""
    captured = dict(getattr(function, "__dict__", {})) | getattr(function, "keywords", {})
    if inspect.isfunction(function):
        try:
            variables = inspect.getclosurevars(function)
        except ValueError:  # a variable has no value yet
            return []
        captured |= {**variables.nonlocals, **variables.globals}
    return [f"{name}: {type(value).__name__}" for name, value in captured.items() if not _pickles(value)]


def _pickles(value: Any) -> bool:
    try:
        cloudpickle.dumps(value)
    except Exception:  # noqa: BLE001 - any exception means no
        return False
    return True
