import itertools
import os
import tempfile
from pathlib import Path

import trio

from trio_asyncio_io import Snapshot, ordered_wait
from trio_asyncio_io.checkpoints import Checkpoint, SQLiteStore


async def square(number):
    await trio.sleep(0.001)
    return number * number


async def job(folder, stop_after=None):
    async with SQLiteStore(folder / "job.sqlite") as store:
        start = await store.load("squares") or Checkpoint(Snapshot(), position=0)
        source = itertools.islice(range(100), start.snapshot.taken, None)
        with open(folder / "squares.txt", "ab") as output:
            output.seek(output.truncate(start.position))

            async def commit():
                # No await between these two, because they belong together
                snapshot, position = results.snapshot(), output.tell()
                output.flush()
                await trio.to_thread.run_sync(os.fsync, output.fileno())
                await store.commit("squares", Checkpoint(snapshot, position=position))

            async with ordered_wait(
                source, square, timeout=5.0, restore=start.snapshot
            ) as results:
                received = 0
                async for result in results:
                    output.write(b"%d\n" % result)
                    received += 1
                    if received == stop_after:
                        return  # simulates a kill
                    if received % 10 == 0:
                        await commit()
                await commit()


def outputs(folder):
    return [int(line) for line in (folder / "squares.txt").read_text().split()]


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        trio.run(job, folder, 37)
        print("outputs, the last 7 after the last checkpoint:", len(outputs(folder)))
        trio.run(job, folder)
        expected = [number * number for number in range(100)]
        print("all there, once:", outputs(folder) == expected)


if __name__ == "__main__":
    main()
