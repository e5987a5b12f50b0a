from concurrent.futures import ThreadPoolExecutor

import trio

from trio_asyncio_io import ordered_wait
from trio_asyncio_io.adapters import from_future


async def main():
    with ThreadPoolExecutor(4) as pool:
        submit = from_future(lambda number: pool.submit(pow, number, 2))
        async with ordered_wait(range(5), submit, timeout=5.0) as results:
            print([result async for result in results])


if __name__ == "__main__":
    trio.run(main)
