import trio

from trio_asyncio_io import ordered_wait
from trio_asyncio_io.policies import grouped


async def fetch_many(codes):
    await trio.sleep(0.1)
    return [
        code.upper() if code.isalpha() else ValueError(f"no code: {code}")
        for code in codes
    ]


async def main():
    lookup = grouped(fetch_many, size=3, age=0.01)
    async with ordered_wait("ab1de", lookup, timeout=5.0, on_error="skip") as results:
        print([result async for result in results], "in", lookup.calls, "calls")


if __name__ == "__main__":
    trio.run(main)
