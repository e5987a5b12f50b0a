"""Access to local variables of PySpark's daemon, which hold the connection to Spark."""

from __future__ import annotations

import sys
from types import FrameType
from typing import TypeVar

__all__ = ["local_of_daemon"]

DAEMON = "pyspark.daemon"

T = TypeVar("T")


def local_of_daemon(name: str, kind: type[T]) -> T | None:
    """A local variable of PySpark's daemon, or None if there is none with this name and type.

    The daemon (PySpark 3.5 to 4.3) runs as `__main__`. Its variables are not a public interface, so callers must work
    without them. Call this in Spark's thread.
    """
    frame: FrameType | None = sys._getframe()  # noqa: SLF001 - the documented way to walk the stack
    while frame is not None:
        if getattr(frame.f_globals.get("__spec__"), "name", None) == DAEMON:
            found = frame.f_locals.get(name)
            if isinstance(found, kind):
                return found
        frame = frame.f_back
    return None
