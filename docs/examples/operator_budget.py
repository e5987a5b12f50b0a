import trio
from trio.testing import MockClock

from trio_asyncio_io import FixedDelay, RetryBudget, ordered_wait, transient
from trio_asyncio_io.testing import Scripted, Step


async def main():
    down = Scripted(default=Step(0.01, error=ConnectionError))
    budget = RetryBudget(ratio=0.2, reserve=10)
    retry = FixedDelay(5, 0.0, retry_on=transient, budget=budget)
    async with ordered_wait(
        range(1000), down, timeout=5.0, retry=retry, on_error="skip"
    ) as results:
        async for _ in results:
            pass
    statistics = results.statistics()
    print(statistics.failed, "failed")
    print("within the budget:", statistics.retried <= 10 + 0.2 * 1000)


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
