"""A run of the operator whose instructions are counted: `counted.py "MODE CAPACITY ELEMENTS [GATE ...]" ...`.

The clock stands still and the scheduler's order is fixed, so that each run executes the same instructions. Imports only
names that old commits have, too.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import trio

from trio_asyncio_io import AsyncWaitOperator

TIMEOUT = 5.0


class StillClock(trio.abc.Clock):
    """A clock that takes as many steps as Trio's to read, and shows always the same time."""

    def __init__(self) -> None:
        self.offset = 0.0
        self.clock = float

    def start_clock(self) -> None:
        """Do nothing."""

    def current_time(self) -> float:
        return self.offset + self.clock()

    def deadline_to_sleep_time(self, deadline: float) -> float:
        return deadline - self.current_time()


async def call(_: int) -> None:
    """Execute one checkpoint, and nothing else."""
    await trio.lowlevel.checkpoint()


async def run(mode: Any, capacity: int, elements: int, names: list[str]) -> None:
    """Make the calls, with gates of these names."""
    options: dict[str, Any] = {"capacity": capacity, "timeout": TIMEOUT, "mode": mode}
    options["buffer"] = max(1_000, 2 * capacity)  # so that a short run fills it
    if names:
        from trio_asyncio_io import gates  # noqa: PLC0415 - old commits have none

        # A rate far from its limit. It is not idle
        far = {"RateLimit": {"rate": 1e9, "burst": 1e9}}
        options["gate"] = [getattr(gates, name)(**far.get(name, {})) for name in names]
    async with AsyncWaitOperator(call, source=range(elements), **options) as operator:
        async for _ in operator.output:
            pass


def main() -> None:
    """Make each run in a process of its own, which valgrind counts from the start of this one."""
    trio._core._run._r.seed(0)
    for words in sys.argv[1:]:
        mode, capacity, elements, *names = words.split()
        child = os.fork()
        if child == 0:
            trio.run(run, mode, int(capacity), int(elements), names, clock=StillClock())
            os._exit(0)
        if os.waitpid(child, 0)[1]:
            sys.exit(f"failed: {words}")


if __name__ == "__main__":
    main()
