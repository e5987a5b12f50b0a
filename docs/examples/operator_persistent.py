from pathlib import Path
from tempfile import TemporaryDirectory

import trio

from trio_asyncio_io import ordered_wait
from trio_asyncio_io.policies import persistent


async def fetch(code):
    await trio.sleep(0.1)
    return code.upper()


async def main():
    with TemporaryDirectory() as directory:
        path = Path(directory, "codes.sqlite")
        for codes in ("ab", "abc"):
            lookup = persistent(fetch, path, name="codes", ttl=86_400.0)
            async with ordered_wait(codes, lookup, timeout=5.0) as results:
                found = [result async for result in results]
            print(found, "calls:", lookup.misses)


if __name__ == "__main__":
    trio.run(main)
