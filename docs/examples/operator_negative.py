import trio

from trio_asyncio_io import ordered_wait
from trio_asyncio_io.policies import cached

calls = []


async def find(code):
    calls.append(code)
    if not code.isalpha():
        raise KeyError(code)


async def main():
    lookup = cached(find, ttl=3600.0, negative_ttl=60.0, errors=KeyError)
    async with ordered_wait(
        ["a", "1", "1", "a"], lookup, timeout=5.0, capacity=1, on_error="skip"
    ) as results:
        print([result async for result in results], "of", calls)


if __name__ == "__main__":
    trio.run(main)
