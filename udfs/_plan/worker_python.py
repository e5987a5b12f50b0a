"""The workers' Python: the driver's own where they run on its machine, and an error that says what it lacks."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, Final, TypeVar

__all__ = ["needs_packages", "use_the_drivers_python"]

_SPARKS_DEFAULT: Final = "python3"

F = TypeVar("F", bound=Callable[..., Any])


def use_the_drivers_python(session: Any) -> None:
    """Let a local session start its workers with the driver's Python, unless the user has chosen one.

    Spark starts them with PYSPARK_PYTHON, else with the first `python3` on PATH, which need not have the packages that
    the driver has. Only a classic session with a local master is changed, once for all of its UDFs: elsewhere the
    driver's Python is a path on another machine.

    Args:
        session: Classic or remote.
    """
    context = getattr(session, "_sc", None)
    if context is None or not str(context.master).startswith("local") or context.pythonExec != _SPARKS_DEFAULT:
        return
    if "PYSPARK_PYTHON" not in os.environ and session.conf.get("spark.pyspark.python", None) is None:
        context.pythonExec = sys.executable or _SPARKS_DEFAULT


def needs_packages(function: F) -> F:
    """The function, which a worker without our packages refuses to load, with an error that says what to set.

    Args:
        function: To be pickled by value, as nested functions are.
    """
    # cloudpickle restores a function's attributes before anything that the function refers to
    vars(function)["_packages"] = _Packages()
    return function


class _Packages:
    """What a worker must be able to import. Checked when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _check_packages, ("pyarrow", "trio", "trio_asyncio_io", "udfs")


def _check_packages(*names: str) -> None:
    """Sent as code: a worker that lacks `udfs` cannot import it, so it may use nothing of this module."""
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


_check_packages.__module__ = "__main__"  # what is there, cloudpickle sends as code
