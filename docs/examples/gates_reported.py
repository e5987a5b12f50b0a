import random

import trio
from trio.testing import MockClock

from trio_asyncio_io import FixedDelay, transient, unordered_wait
from trio_asyncio_io.gates import CircuitBreaker, RateLimit
from trio_asyncio_io.policies import hedged
from trio_asyncio_io.progress import summary

seen = set()


async def numbers():
    for number in range(1200):
        yield number
        await trio.sleep(0.05)


async def lookup(number):
    is_slow = number % 20 == 0 and number not in seen
    seen.add(number)
    await trio.sleep(0.97 if is_slow else 0.03)
    if 2 <= trio.current_time() < 12:
        raise ConnectionError("the service is down")
    return number


async def main():
    random.seed(1)  # the breaker pauses at random
    async with unordered_wait(
        numbers(),
        hedged(lookup, after=0.23),
        timeout=5.0,
        capacity=20,
        retry=FixedDelay(5, 0.1, retry_on=transient),
        gate=[RateLimit(60), CircuitBreaker()],
    ) as results:
        async for _ in results:
            pass
    statistics = results.statistics()
    print(summary(statistics, trio.current_time()))
    for gate, seconds in statistics.seconds_by_gate.items():
        print(f"{gate}: {seconds:.0f} s")
    print(statistics.hedged, "second calls,", statistics.hedges_won, "won")


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
