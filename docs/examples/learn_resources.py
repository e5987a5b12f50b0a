import trio
from trio.testing import MockClock

from trio_asyncio_io import AsyncFunction, unordered_wait
from trio_asyncio_io.policies import single_flight


class Lookup(AsyncFunction):
    async def open(self):  # before the first call
        print("open")
        self.connections = trio.CapacityLimiter(2)  # as in a pool
        self.calls = 0

    async def invoke(self, city):  # once for each element, many at once
        async with self.connections:
            self.calls += 1
            await trio.sleep(0.1)
            return city.upper()

    async def close(self):  # after the last call has ended, also after an error
        print("close, after", self.calls, "calls")


async def one_operator(function):
    async with unordered_wait(
        ["oslo", "rome", "oslo"], function, timeout=5.0
    ) as results:
        return sorted([result async for result in results])


async def main():
    print(await one_operator(Lookup()))

    shared = single_flight(Lookup())  # counts its users
    async with trio.open_nursery() as nursery:
        nursery.start_soon(one_operator, shared)
        nursery.start_soon(one_operator, shared)


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
