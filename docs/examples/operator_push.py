import trio
from trio.testing import MockClock

from trio_asyncio_io import AsyncWaitOperator


async def echo_after(seconds):
    await trio.sleep(seconds)
    return seconds


async def produce(operator):
    for seconds in (0.3, 0.1, 0.2):
        await operator.put(seconds)
    operator.end_input()


async def main():
    async with (
        AsyncWaitOperator(echo_after, mode="unordered", timeout=5.0) as operator,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(produce, operator)
        async for result in operator.output:
            print(result)


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
