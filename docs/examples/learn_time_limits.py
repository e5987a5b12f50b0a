import trio
from trio.testing import MockClock

from trio_asyncio_io import ordered_wait


async def call(name):
    if name == "hangs":
        try:
            await trio.sleep_forever()
        finally:
            with trio.move_on_after(0.2, shield=True):
                await trio.sleep_forever()  # ask the server to stop, for at most 0.2 s
    if name == "catches":
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            return "a result, although it was cancelled"
    await trio.sleep(0.3)
    return name


async def last_known(name):
    await trio.sleep(0.2)
    return f"the last known value of {name}"


async def main(**options):
    async with ordered_wait(
        ["quick", "hangs", "catches", "next"],
        call,
        capacity=3,
        timeout=1.0,
        on_timeout=last_known,
        **options,
    ) as results:
        async for result in results:
            print(f"{trio.current_time():.1f} {result}")
    numbers = results.statistics()
    print("completed:", numbers.completed, "timed out:", numbers.timed_out)


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
