import trio
from trio.testing import MockClock

from trio_asyncio_io import ordered_wait


async def first_is_slow(number):
    await trio.sleep(5.0 if number == 0 else 0.01)
    return number


async def main():
    for buffer in (10, 1_000):
        start = trio.current_time()
        async with ordered_wait(
            range(500), first_is_slow, capacity=10, buffer=buffer, timeout=10.0
        ) as results:
            async for _ in results:
                pass
        print(f"buffer {buffer}: {trio.current_time() - start:.2f} s")


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
