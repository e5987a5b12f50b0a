"""The Python of Spark's workers: the driver's in a local session. It names packages that it lacks."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

import pyarrow as pa

from .._tracebacks import traceback_as_note
from .session import context_of

_SPARKS_DEFAULT: Final = "python3"

F = TypeVar("F", bound=Callable[..., Any])


def use_the_drivers_python(session: Any) -> None:
    """Let a local session start its workers with the driver's Python, unless the user has configured one.

    Spark starts workers with PYSPARK_PYTHON or else with the first `python3` on PATH, which may lack the driver's
    packages. Only a classic session with a local master is changed, once for all of its UDFs. On a cluster the path of
    the driver's Python is meaningless.

    Args:
        session: Classic or remote.
    """
    context = context_of(session)
    if context is None or not str(context.master).startswith("local") or context.pythonExec != _SPARKS_DEFAULT:
        return
    if "PYSPARK_PYTHON" not in os.environ and session.conf.get("spark.pyspark.python", None) is None:
        context.pythonExec = sys.executable or _SPARKS_DEFAULT


def with_package_check(function: F) -> F:
    """Make a worker that lacks our packages raise a helpful error when it loads the function.

    Args:
        function: A nested function, because those are pickled by value.
    """
    # cloudpickle restores a function's attributes before anything that the function refers to
    vars(function)["_packages"] = _Packages()
    return function


def for_map_in_arrow(name: str, run: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]) -> Any:
    """The function for `mapInArrow`, which Spark's plan shows under this name."""
    return with_package_check(as_task(name, run))


def as_task(name: str, run: Callable[[Iterator[Any]], Iterator[Any]]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """What runs in a worker, under this name, and raises exceptions as Spark shows them best."""

    def named(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:  # Spark takes the kind of a column UDF from these
        with traceback_as_note():
            yield from run(batches)

    named.__name__ = named.__qualname__ = name
    return named


class _Packages:
    """The packages that a worker must be able to import. Checked when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _check_packages, ("pyarrow", "trio", "trio_asyncio_io", "udfs")


def _check_packages(*names: str) -> None:
    """Sent as code, because a worker may lack `udfs`. So it must not use anything of this module."""
    import sys  # noqa: PLC0415 - as the docstring says
    from importlib import import_module  # noqa: PLC0415

    for name in names:
        try:
            import_module(name)
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                f"the Python of Spark's workers, {sys.executable}, has no module {error.name}. Before Spark starts, "
                "set the environment variable PYSPARK_PYTHON to a Python in which trio-asyncio-io[spark] is installed",
                name=error.name,
            ) from None


_check_packages.__module__ = "__main__"  # cloudpickle sends functions of this module as code
