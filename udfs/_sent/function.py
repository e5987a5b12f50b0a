"""The user's function as bytes, which the driver sends to the workers."""

from __future__ import annotations

import hashlib
import inspect
import pickle
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any, Final, TypeAlias
from uuid import uuid4
from weakref import WeakKeyDictionary

import pyspark
from pyspark import cloudpickle

from trio_asyncio_io.integration import describe, is_async, name_of

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

ON_THE_DRIVER = (
    "DataFrames and sessions of Spark exist only on the driver. Join the DataFrame, or collect its rows on the driver "
    "and capture those."
)

# Spark's broadcast variables. A PySpark that is only a client of Spark Connect lacks the class
BROADCAST: Final[Any] = getattr(pyspark, "Broadcast", ())
Broadcasts: TypeAlias = tuple[Any, ...]
Pickled: TypeAlias = tuple[bytes, Broadcasts]

# Identifies each broadcast variable of the driver in digests
_IDENTITIES: Final[WeakKeyDictionary[Any, bytes]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class PackedFunction:
    """A function as bytes. Tasks of one process share one open instance of equal functions.

    Attributes:
        name: The name of the function in errors and columns.
        digest: The SHA-256 digest of `payload` and the identities of `broadcasts`. Equal functions have equal digests.
        payload: The pickle.
        broadcasts: The broadcast variables that it captures. Spark sends them with each command whose pickle has them.
    """

    name: str
    digest: str
    payload: bytes = field(repr=False)  # may hold secrets, as the broadcast variables may
    broadcasts: Broadcasts = field(default=(), repr=False)

    def unpack(self) -> Any:
        """A new instance of the function."""
        return loaded(self.payload, self.broadcasts)


def pack(function: Any, label: str = "the function") -> PackedFunction:
    """Pickle a function.

    Args:
        function: An async callable or an `AsyncFunction`. Its first call shows whether a function that is not declared
            async returns an awaitable, as one with a decorator may.
        label: The name of the parameter, for error messages.

    Raises:
        TypeError: The function cannot be async, its `open` or `close` is not, or it captures an object that cannot be
            sent. The message shows what to do.
    """
    name = name_of(function)
    _check_is_async(function, label, name)
    if hasattr(function, "invoke"):
        _check_open_and_close(function, name)
    payload, broadcasts = dumped(function, f"{label} {name}")
    digest = hashlib.sha256(payload)
    for each in broadcasts:
        digest.update(_IDENTITIES.setdefault(each, uuid4().bytes))
    return PackedFunction(name, digest.hexdigest(), payload, broadcasts)


def _check_is_async(function: Any, label: str, name: str) -> None:
    """Refuse what cannot return an awaitable."""
    if inspect.iscoroutine(function):
        raise TypeError(f"{label} must be async, got the result of calling {name}: give {name} itself")
    if isinstance(function, type):
        raise TypeError(f"{label} must be an instance, got the class {name}: write {name}()")
    if hasattr(function, "asNondeterministic"):
        raise TypeError(f"{label} must be async, got the UDF {name}: give the async function from which you made it")
    if any(map(inspect.isasyncgenfunction, (function, getattr(function, "invoke", None)))):
        raise TypeError(
            f"{label} must return its result, but {name} is an async generator, because it contains `yield`. Return a "
            "list instead; with flatten=True each item becomes an output"
        )
    if not (callable(function) or hasattr(function, "invoke")):
        raise TypeError(f"{label} must be an async callable or an AsyncFunction, got {describe(function)}")
    if inspect.isbuiltin(function) or inspect.isgeneratorfunction(function):  # others may return a coroutine
        raise TypeError(
            f"{label} must be async, got {name}. Declare it with `async def`, or run a blocking function in threads: "
            f"trio_asyncio_io.adapters.in_thread({name})"
        )


def _check_open_and_close(function: Any, name: str) -> None:
    """Refuse an `open` or a `close` that neither is declared async nor wraps a method that is."""
    for each in ("open", "close"):
        method = getattr(function, each, None)
        if method is not None and not is_async(method) and not is_async(inspect.unwrap(method)):
            raise TypeError(f"{each}() of {name} must be async: declare it with `async def {each}(self)`")


def dumped(value: object, label: str) -> Pickled:
    """Pickle a value without its broadcast variables.

    Returns:
        The pickle and the broadcast variables, for `loaded`.

    Raises:
        TypeError: The value captures an object that cannot be sent. The message names it, and shows what to do.
    """
    try:
        return _pickled(value)
    except Exception as error:
        culprits = _culprits(value)
        names = ", ".join(f"{name}: {type(each).__name__}" for name, each in culprits.items())
        modules = {type(each).__module__.partition(".")[0] for each in culprits.values()}
        raise TypeError(
            f"{label} captures something{names and f' ({names})'} that cannot be sent to the workers: {error}\n"
            f"{ON_THE_DRIVER if modules == {'pyspark'} else PATTERN}"
        ) from error


def loaded(payload: bytes, broadcasts: Broadcasts) -> Any:
    """A new copy of a value that was pickled by `dumped`."""
    return _Unpickler(payload, broadcasts).load()


class _Pickler(cloudpickle.CloudPickler):
    """Leaves broadcast variables out, because Spark sends one with the command that it pickles next, and only there."""

    def __init__(self, file: BytesIO) -> None:
        super().__init__(file)  # type: ignore[no-untyped-call]
        self.positions: dict[Any, int] = {}

    def persistent_id(self, value: Any) -> int | None:
        is_broadcast = issubclass(type(value), BROADCAST)  # `isinstance` evaluates attributes of a proxy
        return self.positions.setdefault(value, len(self.positions)) if is_broadcast else None


class _Unpickler(pickle.Unpickler):  # noqa: S301 - the driver has made the pickles
    """Inserts the broadcast variables."""

    def __init__(self, payload: bytes, broadcasts: Broadcasts) -> None:
        super().__init__(BytesIO(payload))
        self._broadcasts = broadcasts

    def persistent_load(self, position: int) -> Any:
        return self._broadcasts[position]


def _pickled(value: object) -> Pickled:
    file = BytesIO()
    pickler = _Pickler(file)
    pickler.dump(value)  # type: ignore[no-untyped-call]
    return file.getvalue(), tuple(pickler.positions)


def _culprits(function: Any) -> dict[str, Any]:
    """The captured objects that cannot be pickled, by name."""
    captured = dict(getattr(function, "__dict__", {})) | getattr(function, "keywords", {})
    if inspect.isfunction(function):
        try:
            variables = inspect.getclosurevars(function)
        except ValueError:  # a variable has no value yet
            return {}
        captured |= {**variables.nonlocals, **variables.globals}
    return {name: value for name, value in captured.items() if not _can_be_pickled(value)}


def _can_be_pickled(value: Any) -> bool:
    try:
        _pickled(value)
    except Exception:  # noqa: BLE001 - any exception means no
        return False
    return True
