import trio
from trio.testing import MockClock

SECONDS = {"a": 0.9, "b": 0.2, "c": 0.3, "d": 0.2, "e": 0.3}


async def call(value):
    await trio.sleep(SECONDS[value])
    return value.upper()


async def feed(source, values):
    async with values:  # closes the channel at the end: the workers' loops end
        for value in source:
            await values.send(value)


async def worker(values, results):
    async with values, results:
        async for value in values:
            await results.send(await call(value))


async def main():
    to_workers, values = trio.open_memory_channel(0)
    to_consumer, results = trio.open_memory_channel(0)
    received = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(feed, SECONDS, to_workers)
        async with values, to_consumer:
            for _ in range(2):  # the capacity
                nursery.start_soon(worker, values.clone(), to_consumer.clone())
        async for result in results:
            received.append(result)
            print(f"{trio.current_time():.1f} {result}")
    print("in the order of the source:", received == sorted(received))


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
