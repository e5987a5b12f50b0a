import trio
from trio.testing import MockClock

from trio_asyncio_io import AsyncWaitOperator


async def call(seconds):
    await trio.sleep(seconds)
    return seconds


async def ends():
    async with AsyncWaitOperator(call, timeout=5.0) as operator:
        await operator.put(0.3)
        await operator.put(0.1)
        operator.end_input()
        try:
            await operator.put(0.2)
        except trio.ClosedResourceError as error:
            print("refused:", error)
        print("received:", [result async for result in operator.output])
    print("ended at", trio.current_time())


async def left_early():
    async with AsyncWaitOperator(call, timeout=5.0) as operator:
        await operator.put(0.3)
        await operator.put(0.1)
    held = [each.element for each in operator.snapshot().elements]
    print("left at", trio.current_time(), "with a snapshot of", held)


if __name__ == "__main__":
    for part in (ends, left_early):
        trio.run(part, clock=MockClock(autojump_threshold=0))
