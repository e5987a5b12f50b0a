import trio
from trio.testing import MockClock

from trio_asyncio_io import ordered_wait
from trio_asyncio_io.gates import RateLimit
from trio_asyncio_io.policies import cached, gated


async def country(ip):
    await trio.sleep(0.1)
    return {"1": "NO", "2": "SE", "3": "DK"}[ip[0]]


async def main():
    lookup = cached(gated(country, RateLimit(1.0)))
    async with ordered_wait(
        ["1.1.1.1", "2.2.2.2", "3.3.3.3"] * 1000, lookup, capacity=1, timeout=5.0
    ) as results:
        countries = {result async for result in results}
    print(sorted(countries), f"after {trio.current_time():.1f} s")
    print(f"the calls waited {lookup.function.wait_seconds:.1f} s for the gate")


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
