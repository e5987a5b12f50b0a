"""PyFlink: its AsyncDataStream. The function runs in a worker process, which writes its counts to a file."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.datastream import AsyncDataStream, StreamExecutionEnvironment
from pyflink.datastream.connectors.number_seq import NumberSequenceSource
from pyflink.datastream.functions import AsyncFunction
from pyflink.java_gateway import get_gateway
from serving import latencies, serve

TIMEOUT = Time.seconds(5)
ENDLESS = 1_000_000_000


class Counting(AsyncFunction):
    """Counts calls, and writes the counts to a file."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def open(self, _: Any) -> None:
        self.running = self.calls = self.peak = self.results = 0
        self.is_written = False

    def write(self) -> None:
        counted = {"calls": self.calls, "peak": self.peak, "results": self.results}
        part = Path(self.path + ".part")
        part.write_text(json.dumps(counted), encoding="utf-8")
        part.replace(self.path)
        self.is_written = True

    async def async_invoke(self, number: int) -> list[int]:
        self.calls += 1
        self.running += 1
        self.peak = max(self.peak, self.running)
        await self.call(number)
        self.running -= 1
        return [number]

    async def call(self, _: int) -> None:
        await asyncio.sleep(0)


class Immediate(Counting):
    def close(self) -> None:
        self.write()


class WithLatency(Counting):
    def __init__(self, path: Path, warm: float, seconds: float) -> None:
        super().__init__(path)
        self.latencies = latencies()
        self.warm, self.seconds = warm, seconds
        self.began: float | None = None

    async def call(self, number: int) -> None:
        if self.began is None:
            self.began = time.monotonic()
        await asyncio.sleep(self.latencies[number % len(self.latencies)])
        since = time.monotonic() - self.began - self.warm
        if 0 <= since < self.seconds:
            self.results += 1
        elif since >= self.seconds and not self.is_written:
            self.write()


def called(function: Counting, mode: str, capacity: int, elements: int) -> StreamExecutionEnvironment:
    environment = StreamExecutionEnvironment.get_execution_environment()
    environment.set_parallelism(1)
    environment.set_python_executable(sys.executable)
    source = NumberSequenceSource(0, elements - 1)
    numbers = environment.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", Types.LONG())
    wait = AsyncDataStream.ordered_wait if mode == "ordered" else AsyncDataStream.unordered_wait
    results = wait(numbers, function, TIMEOUT, capacity, Types.LONG())
    sink = get_gateway().jvm.org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink()
    results._j_data_stream.sinkTo(sink)
    return environment


def checkpoint(mode: str, capacity: int, elements: float) -> dict[str, Any]:
    with TemporaryDirectory() as folder:
        path = Path(folder, "counted")
        called(Immediate(path), mode, capacity, int(elements)).execute()
        return json.loads(path.read_text(encoding="utf-8"))


def latency(mode: str, capacity: int, warm: float, seconds: float) -> dict[str, Any]:
    with TemporaryDirectory() as folder:
        path = Path(folder, "counted")
        job = called(WithLatency(path, warm, seconds), mode, capacity, ENDLESS).execute_async()
        while not path.exists():
            time.sleep(0.05)
        job.cancel().result()
        return json.loads(path.read_text(encoding="utf-8"))


if __name__ == "__main__":
    serve({"checkpoint": checkpoint, "latency": latency})
