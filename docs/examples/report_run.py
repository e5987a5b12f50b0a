import trio
from trio.testing import MockClock

from trio_asyncio_io import FixedDelay, ordered_wait, transient
from trio_asyncio_io.report import report
from trio_asyncio_io.testing import Scripted, Step

# Every 50th call is slow, and every 40th one fails at first
script = {n: Step(2.0) for n in range(0, 1000, 50)}
reset = Step(0.1, error=ConnectionError("connection reset"))
script |= {n: [reset, Step(0.2)] for n in range(1, 1000, 40)}
lookup = Scripted(script, default=Step(0.2))


async def main():
    with report("run.html", title="weather lookups") as observer:
        async with ordered_wait(
            range(1000),
            lookup,
            capacity=20,
            timeout=5.0,
            retry=FixedDelay(3, 0.5, retry_on=transient),
            observer=observer,
        ) as results:
            print(len([result async for result in results]), "results")


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
