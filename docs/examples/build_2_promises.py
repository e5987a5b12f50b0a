from math import inf

import trio
from trio.testing import MockClock

SECONDS = {"a": 3.0} | dict.fromkeys("bcdefghij", 0.3)


async def call(value):
    await trio.sleep(SECONDS[value])
    return value.upper()


class Promise:
    """A value, and a place for its result."""

    def __init__(self, value):
        self.value = value
        self.result = None
        self.has_result = trio.Event()


async def feed(source, order, to_workers):
    async with order, to_workers:
        for value in source:
            promise = Promise(value)
            await order.send(promise)  # now its place in the output is decided
            await to_workers.send(promise)


async def worker(promises):
    async for promise in promises:
        promise.result = await call(promise.value)
        promise.has_result.set()


async def main():
    to_workers, promises = trio.open_memory_channel(0)
    append, order = trio.open_memory_channel(inf)  # a deque that one can wait for
    async with trio.open_nursery() as nursery:
        nursery.start_soon(feed, SECONDS, append, to_workers)
        for _ in range(2):
            nursery.start_soon(worker, promises)
        async for promise in order:
            await promise.has_result.wait()
            held = 1 + order.statistics().current_buffer_used
            print(f"{trio.current_time():.1f} {promise.result}, {held} held")


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
