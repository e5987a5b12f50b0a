import trio
from trio.testing import MockClock

from trio_asyncio_io import unordered_wait
from trio_asyncio_io.gates import Auto, PerKey


async def post(event):
    tenant, seconds = event
    await trio.sleep(seconds)
    return f"{tenant} took {seconds} s, at {trio.current_time():g}"


async def main():
    events = [("a", 3), ("a", 1), ("a", 1), ("b", 2.5)]
    two_per_tenant = PerKey(Auto(most=2), key=lambda event: event[0])
    async with unordered_wait(
        events, post, timeout=9.0, gate=two_per_tenant
    ) as results:
        async for result in results:
            print(result)


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
