"""The packed function: what the driver sends, and what a worker process makes of it once."""

from __future__ import annotations

import hashlib
import inspect
from dataclasses import dataclass
from typing import Any

from pyspark import cloudpickle

from trio_asyncio_io.adapters import is_async

__all__ = ["PackedFunction", "dumped", "pack", "parameter_names"]

PATTERN = """\
What lives (a client, a connection, a lock, a nursery) is opened in the worker, not captured on the driver:

    class Lookup(AsyncFunction):
        async def open(self):                 # once per Python worker process
            self.client = udfs.http.client()
        async def invoke(self, ip):           # once per row
            return (await self.client.get(f"http://service/{ip}")).text
        async def close(self):
            await self.client.aclose()
"""


@dataclass(frozen=True, slots=True)
class PackedFunction:
    """A function as bytes. Equal bytes are the same function, and share one open instance per process.

    Attributes:
        name: What errors and columns call it.
        digest: Identifies it.
        payload: The pickle.
    """

    name: str
    digest: str
    payload: bytes

    def unpack(self) -> Any:
        """A new instance of the function."""
        return cloudpickle.loads(self.payload)


def pack(function: Any, what: str = "the function") -> PackedFunction:
    """The function, ready to be sent.

    Raises:
        TypeError: It is not async, or it captures what cannot be sent; says what, and what to do.
    """
    name = name_of(function)
    if isinstance(function, type):
        raise TypeError(f"{what} must be an instance, got the class {name}: write {name}()")
    if not is_async(function):
        raise TypeError(
            f"{what} must be async, got {name}. Declare it with `async def`; a blocking function can be run in "
            f"threads: trio_asyncio_io.adapters.in_thread({name})"
        )
    payload = dumped(function, f"{what} {name}")
    return PackedFunction(name, hashlib.sha256(payload).hexdigest(), payload)


def dumped(value: object, what: str) -> bytes:
    """The value's pickle.

    Raises:
        TypeError: It captures what cannot be sent; says what, and what to do.
    """
    try:
        return bytes(cloudpickle.dumps(value))
    except Exception as error:
        culprits = _culprits(value)
        which = f" ({', '.join(culprits)})" if culprits else ""
        raise TypeError(
            f"{what} captures something{which} that cannot be sent to the workers: {error}\n{PATTERN}"
        ) from error


def name_of(function: Any) -> str:
    """What to call the function in a column's name or an error."""
    innermost = _innermost(function)
    return str(getattr(innermost, "__name__", type(innermost).__name__))


def parameter_names(function: Any) -> list[str]:
    """The names of the function's parameters, which are the columns it wants unless it is told otherwise.

    Raises:
        TypeError: They cannot be told, or the function takes any number of them.
    """
    innermost = _innermost(function)
    try:
        parameters = inspect.signature(getattr(innermost, "invoke", innermost)).parameters.values()
    except (TypeError, ValueError):
        parameters = ()  # type: ignore[assignment]
    names = [each.name for each in parameters if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]
    if not names or len(names) != len(list(parameters)):
        raise TypeError(f"cannot tell from {name_of(function)} which columns it wants: give inputs=[...]")
    return names


def _innermost(function: Any) -> Any:
    """The user's own, without the policies around it."""
    while hasattr(function, "function"):
        function = function.function
    return function


def _culprits(function: Any) -> list[str]:
    """The names of the captured things that do not pickle."""
    captured = dict(getattr(function, "__dict__", {})) | getattr(function, "keywords", {})
    if inspect.isfunction(function):
        try:
            variables = inspect.getclosurevars(function)
        except ValueError:  # one of them has no value yet
            return []
        captured |= {**variables.nonlocals, **variables.globals}
    return [f"{name}: {type(value).__name__}" for name, value in captured.items() if not _pickles(value)]


def _pickles(value: Any) -> bool:
    try:
        cloudpickle.dumps(value)
    except Exception:  # noqa: BLE001 - whatever it raises is the answer
        return False
    return True
