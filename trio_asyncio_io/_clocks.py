"""The clocks: Trio's time, and the CPU time of the loop's thread."""

from __future__ import annotations

from time import thread_time

import trio

__all__ = ["read_clocks"]


def read_clocks() -> tuple[float, float]:
    """The time on Trio's clock, and the CPU time of this thread, in seconds."""
    return trio.current_time(), thread_time()
