import tempfile
from itertools import islice
from pathlib import Path

import trio
from trio.testing import MockClock

from trio_asyncio_io import Snapshot, ordered_wait
from trio_asyncio_io.checkpoints import Checkpoint


async def square(number):
    await trio.sleep(0.1)
    return number * number


async def job(path, stored, kill_after=None, note=lambda *_: None):
    """Write the squares to a file, with a checkpoint after each five."""
    start = stored[-1] if stored else Checkpoint(Snapshot(), position=0)
    source = islice(range(20), start.snapshot.taken, None)
    with path.open("ab") as output:
        note(output.seek(output.truncate(start.position)), "start")
        async with ordered_wait(
            source, square, capacity=2, timeout=5.0, restore=start.snapshot
        ) as results:
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


def text_of(path):
    return path.read_text()


async def main():
    with tempfile.TemporaryDirectory() as folder:
        path, stored = Path(folder, "squares"), []
        await job(path, stored, kill_after=8)
        print("at the kill:", text_of(path))
        print("position of the last checkpoint:", stored[-1].position)
        await job(path, stored)
        print("at the end: ", text_of(path))


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
