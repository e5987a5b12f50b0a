import trio
from trio.testing import MockClock

from trio_asyncio_io import ExponentialBackoff, ordered_wait, transient


class BusyError(Exception):
    status = 503


class Service:
    """Serves 60 calls at once, of 0.1 s each, and refuses more."""

    running = 0

    async def __call__(self, number):
        if self.running == 60:
            await trio.sleep(0.005)
            raise BusyError
        self.running += 1
        await trio.sleep(0.1)
        self.running -= 1
        return number


async def main():
    retry = ExponentialBackoff(10, initial=0.1, maximum=5.0, retry_on=transient)
    async with ordered_wait(
        range(6000), Service(), timeout=60.0, capacity="auto", retry=retry
    ) as results:
        async for _ in results:
            pass
    statistics = results.statistics()
    print(f"{trio.current_time():.0f} s, where the best possible is 10 s")
    print("refused calls per record:", round(statistics.retried / 6000, 2))
    print(statistics.finding.partition(":")[0])


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
