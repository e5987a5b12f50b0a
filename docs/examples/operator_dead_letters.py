import trio

from trio_asyncio_io import ordered_wait


async def reciprocal(number):
    return 1 / number


async def main():
    async with ordered_wait(
        [2, 0, 4], reciprocal, timeout=5.0, on_error="dead_letter"
    ) as results:
        print([result async for result in results])
        async for dead in results.dead_letters:
            print(dead.element, repr(dead.error), "attempts:", dead.attempts)


if __name__ == "__main__":
    trio.run(main)
