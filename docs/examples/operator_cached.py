import trio

from trio_asyncio_io import ordered_wait
from trio_asyncio_io.policies import cached, single_flight

asked = []


async def fetch(code):
    asked.append(code)
    await trio.sleep(0.1)
    return code.upper()


async def main():
    lookup = cached(single_flight(fetch), size=1_000, ttl=60.0)
    async with ordered_wait(["a", "b", "a", "a"], lookup, timeout=5.0) as results:
        print([result async for result in results], "of", sorted(asked))


if __name__ == "__main__":
    trio.run(main)
