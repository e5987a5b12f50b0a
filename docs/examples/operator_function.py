import trio

from trio_asyncio_io import AsyncFunction, ordered_wait


class Lookup(AsyncFunction[str, int]):
    async def open(self):
        self.table = {"a": 1, "b": 2}

    async def invoke(self, value):
        await trio.sleep(0.1)
        return self.table[value]

    async def timeout(self, value):  # same as `on_timeout` of a callable
        return -1

    async def close(self):
        print("closed")


async def main():
    async with ordered_wait(["a", "b"], Lookup(), timeout=5.0) as results:
        print([result async for result in results])


if __name__ == "__main__":
    trio.run(main)
