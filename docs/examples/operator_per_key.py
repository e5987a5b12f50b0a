import trio
from trio.testing import MockClock

from trio_asyncio_io import keyed_wait


async def post(event):
    tenant, seconds = event
    await trio.sleep(seconds)
    return f"{tenant} took {seconds} s, at {trio.current_time():g}"


async def main():
    events = [("a", 3), ("a", 1), ("a", 1), ("b", 2)]
    async with keyed_wait(
        events, post, key=lambda event: event[0], per_key=2, timeout=9.0
    ) as results:
        async for result in results:
            print(result)


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
