import os
import signal
from itertools import islice
from pathlib import Path

import trio

from trio_asyncio_io import ExponentialBackoff, Snapshot, ordered_wait, transient
from trio_asyncio_io.checkpoints import Checkpoint, SQLiteStore


async def look_up(line):  # call your service here
    await trio.sleep(0.1)
    return line.upper()


async def stop_on_a_signal(scope):
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            print("stopping")
            scope.cancel()


async def enrich(lines, output, store):
    start = await store.load("job") or Checkpoint(Snapshot(), position=0)
    source = islice(lines, start.snapshot.taken, None)  # what was not taken before
    output.seek(output.truncate(start.position))  # drop what was not committed

    async def commit():
        # No await between these two, because they belong together
        snapshot, position = results.snapshot(), output.tell()
        output.flush()
        await trio.to_thread.run_sync(os.fsync, output.fileno())
        await store.commit("job", Checkpoint(snapshot, position=position))

    retry = ExponentialBackoff(3, initial=0.2, maximum=2.0, retry_on=transient)
    async with (
        ordered_wait(
            source,
            look_up,
            capacity=10,
            timeout=30.0,
            retry=retry,
            restore=start.snapshot,
        ) as results,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(stop_on_a_signal, nursery.cancel_scope)
        last_commit = trio.current_time()
        async for result in results:
            output.write(result.encode())
            if trio.current_time() > last_commit + 1.0:
                await commit()
                last_commit = trio.current_time()
        nursery.cancel_scope.cancel()  # ends the task that waits for signals
    await commit()  # at the end of the input, and after a signal


async def job():
    with open("input.txt") as lines, open("output.txt", "ab") as output:
        async with SQLiteStore("job.sqlite") as store:
            await enrich(lines, output, store)


def main():
    if not Path("input.txt").exists():
        Path("input.txt").write_text("".join(f"line {n}\n" for n in range(300)))
    trio.run(job)
    print(len(Path("output.txt").read_text().splitlines()), "lines written")


if __name__ == "__main__":
    main()
