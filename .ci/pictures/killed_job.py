"""A job that writes its results to a file, with checkpoints in memory: what is drawn of a kill."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from pathlib import Path

import trio

from trio_asyncio_io import Snapshot, ordered_wait
from trio_asyncio_io.checkpoints import Checkpoint


async def square(number: int) -> int:
    await trio.sleep(0.1)
    return number * number


async def job(
    path: Path, stored: list[Checkpoint], note: Callable[[int, str], None], *, kill_after: int | None = None
) -> None:
    """Write the squares to a file, with a checkpoint after each five. `note` is called with each position."""
    start = stored[-1] if stored else Checkpoint(Snapshot(), position=0)
    source = islice(range(20), start.snapshot.taken, None)
    with path.open("ab") as output:
        note(output.seek(output.truncate(start.position)), "start")
        async with ordered_wait(source, square, capacity=2, timeout=5.0, restore=start.snapshot) as results:
            received = 0
            async for result in results:
                note(output.write(b"%4d" % result) and output.tell(), "write")
                received += 1
                if received == kill_after:
                    return
                if received % 5 == 0:
                    position = output.tell()
                    stored.append(Checkpoint(results.snapshot(), position=position))
                    note(position, "commit")
