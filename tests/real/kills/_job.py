"""The program that kills itself: one job per mode, with and without `flatten`, all concurrently in one process.

Each job starts from its durable checkpoint and writes two files:

    <job>.out   its outputs
    <job>.log   `life <number>`, `start <value>` of a call, `end <value>` of an invocation, `commit <position>`, and
                `committed <position>` once the commit has returned

    python _job.py <folder> <life> <number of elements> <recorded or plain> <lines until the kill>

It sends itself SIGKILL from another thread, within milliseconds of that line of its logs (counted over all jobs; 0:
never). In every second life, the count begins once each job has committed. So the events of a life do not depend on the
speed of the machine.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice, product
from pathlib import Path
from typing import Any

import trio

from trio_asyncio_io import AsyncFunction, Snapshot, StreamRecord, Watermark, keyed_wait, ordered_wait, unordered_wait
from trio_asyncio_io.checkpoints import Checkpoint, SQLiteStore
from trio_asyncio_io.policies import persistent

OPERATORS = {
    "ordered": ordered_wait,
    "unordered": unordered_wait,
    "keyed": partial(keyed_wait, key=lambda value: value % 7),
}
RECORDS_PER_SEGMENT = 20
OUTPUTS_PER_COMMIT = 10
LONGEST_DELAY = 0.02  # seconds between the line and the kill


class Killer:
    """Kills this process soon after a line of the logs.

    Args:
        lines: The number of that line; 0: never.
        jobs: The logs in which the first commit must precede the first counted line.
    """

    def __init__(self, lines: int, jobs: set[str]) -> None:
        self._left = lines
        self._uncommitted = jobs

    def count_line(self, job: str, line: str) -> None:
        if line.startswith("committed"):
            self._uncommitted.discard(job)
        if not self._uncommitted:
            self._left -= 1
            if self._left == 0:
                self._kill_soon()

    @staticmethod
    def _kill_soon() -> None:
        delay = random.uniform(0.0, LONGEST_DELAY)
        threading.Timer(delay, os.kill, (os.getpid(), signal.SIGKILL)).start()


class Log:
    """Lines in a file. Each is appended in one write, so a kill rarely tears one (only at the edge of a page)."""

    def __init__(self, path: Path, killer: Killer) -> None:
        self.path = path
        self._killer = killer
        self.descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self._write("\n")  # ends a torn line

    def append(self, line: str) -> None:
        self._write(f"{line};\n")
        self._killer.count_line(self.path.name, line)

    def _write(self, text: str) -> None:
        os.write(self.descriptor, text.encode())


class Service(AsyncFunction[int, Any]):
    """The function of the jobs. Logs its calls."""

    def __init__(self, log: Log, *, flatten: bool) -> None:
        self.log = log
        self.flatten = flatten

    async def invoke(self, value: int) -> Any:
        self.log.append(f"start {value}")
        await trio.sleep(random.uniform(0.01, 0.03))
        return [f"{value}.{part}" for part in range(value % 4)] if self.flatten else f"{value}.0"


class EndLogger(AsyncFunction[int, Any]):
    """A function around another one that logs the ends of its invocations."""

    def __init__(self, function: AsyncFunction[int, Any], log: Log) -> None:
        self.function = function
        self.log = log

    async def open(self) -> None:
        await self.function.open()

    async def invoke(self, value: int) -> Any:
        result = await self.function.invoke(value)
        self.log.append(f"end {value}")
        return result

    async def close(self) -> None:
        await self.function.close()


def elements(number: int) -> Iterator[StreamRecord[int] | Watermark]:
    for value in range(number):
        yield StreamRecord(value, value)
        if value % RECORDS_PER_SEGMENT == RECORDS_PER_SEGMENT - 1:
            yield Watermark(value)


@dataclass(frozen=True)
class Job:
    """One of the jobs of the process.

    Attributes:
        name: The mode, and `one` or `several` outputs per element.
        folder: The folder of its files.
    """

    name: str
    folder: Path

    async def run(self, life: str, number: int, variant: str, store: SQLiteStore, killer: Killer) -> None:
        log = Log(self.folder / f"{self.name}.log", killer)
        log.append(f"life {life}")
        function: AsyncFunction[int, Any] = Service(log, flatten=self.is_flat)
        if variant == "recorded":
            function = persistent(function, self.folder / f"{self.name}.results", name="service")
        await self.consume(EndLogger(function, log), number, log, store)

    @property
    def is_flat(self) -> bool:
        return self.name.endswith("several")

    async def consume(self, function: AsyncFunction[int, Any], number: int, log: Log, store: SQLiteStore) -> None:
        """As in the documentation, except for the sync to disk. A kill does not lose writes that were not synced."""
        start = await store.load(self.name) or Checkpoint(Snapshot(), position=0)
        source = islice(elements(number), start.snapshot.taken, None)
        wait = OPERATORS[self.name.partition("-")[0]]
        options = {"capacity": 8, "buffer": 40, "timeout": 60.0, "flatten": self.is_flat, "restore": start.snapshot}

        async def commit() -> None:
            output.flush()
            checkpoint = Checkpoint(results.snapshot(), position=output.tell())
            log.append(f"commit {checkpoint.position}")
            await store.commit(self.name, checkpoint)
            log.append(f"committed {checkpoint.position}")

        with Path.open(self.folder / f"{self.name}.out", "ab") as output:
            output.seek(output.truncate(start.position))
            async with wait(source, function, **options) as results:
                count = 0
                async for result in results:
                    output.write(line(result))
                    count += 1
                    if count % OUTPUTS_PER_COMMIT == 0:
                        await commit()
            await commit()


def line(output: Any) -> bytes:
    text = f"until {output.timestamp}" if isinstance(output, Watermark) else output.value
    return f"{text}\n".encode()


async def main(folder: Path, life: str, number: int, variant: str, lines: int) -> None:
    names = [f"{mode}-{kind}" for mode, kind in product(OPERATORS, ["one", "several"])]
    killer = Killer(lines, {f"{name}.log" for name in names} if int(life) % 2 else set())
    async with SQLiteStore(folder / "job.sqlite") as store, trio.open_nursery() as nursery:
        for name in names:
            nursery.start_soon(Job(name, folder).run, life, number, variant, store, killer)


if __name__ == "__main__":
    trio.run(main, Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4], int(sys.argv[5]))
