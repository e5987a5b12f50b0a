"""Whether a thread has a CPU, and for how long it has had one and has waited for one, as Linux counts them."""

from __future__ import annotations

from threading import get_native_id

# A folder per thread of this process, by its native identifier. Not a `Path`: each operator reads twice, and a `Path`
# takes ten times as long
THREADS = "/proc/self/task"


def cpu_times(thread: int) -> tuple[float, float] | None:
    """How long a thread has run, and was ready to run while the CPU did something else. Any thread may call this.

    Args:
        thread: The native identifier of a thread of this process.

    Returns:
        Both times, in seconds. None where the system does not count them.
    """
    try:
        with open(f"{THREADS}/{thread}/schedstat", "rb") as file:  # noqa: PTH123
            ran, waited = file.read().split()[:2]
        return int(ran) / 1e9, int(waited) / 1e9
    except (OSError, ValueError):
        return None


def cpu_wait(thread: int | None = None) -> float:
    """How long a thread was ready to run while the CPU did something else, in seconds; 0.0 where this is not counted.

    On a busy machine, the thread of a CPU-bound function has the CPU for a part of the time only.

    Args:
        thread: As for `cpu_times`. None: the present one.
    """
    times = cpu_times(get_native_id() if thread is None else thread)
    return 0.0 if times is None else times[1]


def is_ready(thread: int) -> bool:
    """Whether a thread runs or waits for a CPU, and not for anything else. False where the system does not say so."""
    try:
        with open(f"{THREADS}/{thread}/stat") as file:  # noqa: PTH123
            return file.read().rpartition(") ")[2].startswith("R")
    except OSError:
        return False
