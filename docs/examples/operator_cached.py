import trio

from trio_asyncio_io import ordered_wait
from trio_asyncio_io.policies import cached, single_flight

calls = []


async def fetch(code):
    calls.append(code)
    await trio.sleep(0.1)
    return code.upper()


async def main():
    lookup = cached(single_flight(fetch), size=1_000, ttl=60.0)
    async with ordered_wait(["a", "b", "a", "a"], lookup, timeout=5.0) as results:
        print([result async for result in results], "of", sorted(calls))


if __name__ == "__main__":
    trio.run(main)
