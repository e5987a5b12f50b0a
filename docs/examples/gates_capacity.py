import trio
from trio.testing import MockClock

from trio_asyncio_io import ordered_wait
from trio_asyncio_io.gates import AdaptiveCapacity


async def run(name, function):
    async with ordered_wait(
        range(9000), function, timeout=60.0, capacity=200, gate=AdaptiveCapacity(8, 200)
    ) as results:
        ends = [trio.current_time() async for _ in results]
    rate = 1000 / (ends[8000] - ends[7000])  # after the limit has been found
    median = results.statistics().latency.p50
    print(f"{name}: {rate:.0f} a second, median latency {median:.2f} s")


async def main():
    servers = trio.CapacityLimiter(20)

    async def busy(number):
        async with servers:  # 20 calls at once, the others wait
            await trio.sleep(0.1)

    async def far_away(number):
        await trio.sleep(0.1)

    await run("busy", busy)
    await run("far away", far_away)


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
