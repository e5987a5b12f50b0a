from math import inf

import trio
from trio.testing import MockClock


async def call(number):
    await trio.sleep(3.0 if number == 0 else 0.5)
    return number


class Promise:
    def __init__(self, value):
        self.value = value
        self.result = None
        self.has_result = trio.Event()


async def feed(source, order, to_workers):
    async with order, to_workers:
        for value in source:
            promise = Promise(value)
            await order.send(promise)  # waits for a place: backpressure
            await to_workers.send(promise)


async def worker(promises):  # a slot
    async for promise in promises:
        promise.result = await call(promise.value)
        promise.has_result.set()


async def measure(capacity, buffer):
    start, waited = trio.current_time(), []
    to_workers, promises = trio.open_memory_channel(inf)
    append, order = trio.open_memory_channel(buffer - 1)  # the consumer holds one
    async with trio.open_nursery() as nursery:
        nursery.start_soon(feed, range(20), append, to_workers)
        for _ in range(capacity):
            nursery.start_soon(worker, promises)
        async for promise in order:
            await promise.has_result.wait()
            waited.append(trio.current_time() - start)
    print(f"capacity {capacity}, buffer {buffer}:", end=" ")
    print(f"the first result at {waited[0]:.1f} s, the last at {waited[-1]:.1f} s")


async def main():
    await measure(capacity=4, buffer=4)
    await measure(capacity=4, buffer=40)


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
