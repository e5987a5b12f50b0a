import trio
from trio.testing import MockClock

from trio_asyncio_io import ordered_wait


async def first_is_slow(number):
    await trio.sleep(3.0 if number == 0 else 0.5)
    return number


async def straggler(buffer, **options):
    start = trio.current_time()
    async with ordered_wait(
        range(20), first_is_slow, capacity=4, buffer=buffer, timeout=9.0, **options
    ) as results:
        async for _ in results:
            pass
    numbers = results.statistics()
    print(f"buffer {buffer}: {trio.current_time() - start:.1f} s,", end=" ")
    print(f"at most {numbers.peak_running} calls and {numbers.peak_buffered} records")


async def half_a_second(number):
    await trio.sleep(0.5)
    return number


async def slow_consumer(**options):
    read = []

    def source():
        for number in range(40):
            read.append(trio.current_time())
            yield number

    async with ordered_wait(
        source(), half_a_second, capacity=4, buffer=8, timeout=9.0, **options
    ) as results:
        async for number in results:
            if number == 7:
                before = len(read)
                await trio.sleep(3.0)  # a slow database, or a full disk
                print("read meanwhile:", len(read) - before)


async def main():
    await straggler(buffer=4)
    await straggler(buffer=40)
    await slow_consumer()


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
