"""The user's function: as bytes, which the driver sends to the workers, and its parameters."""

from __future__ import annotations

import hashlib
import inspect
import pickle
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
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


# Its parameters, and how many columns it accepts.

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
