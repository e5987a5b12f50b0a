import trio
from trio.testing import MockClock

from trio_asyncio_io import ExponentialBackoff, ordered_wait, transient
from trio_asyncio_io.gates import AdaptiveRate


class BusyError(Exception):
    status = 429


class Service:
    """Admits 40 calls per second."""

    def __init__(self):
        self.calls_by_second = {}

    async def __call__(self, number):
        second = int(trio.current_time())
        self.calls_by_second[second] = self.calls_by_second.get(second, 0) + 1
        await trio.sleep(0.01)
        if self.calls_by_second[second] > 40:
            raise BusyError
        return number


async def run(gate):
    retry = ExponentialBackoff(50, initial=0.1, maximum=5.0, retry_on=transient)
    async with ordered_wait(
        range(2000), Service(), timeout=600.0, retry=retry, gate=gate
    ) as results:
        async for _ in results:
            pass
    statistics = results.statistics()
    refused = statistics.retried / statistics.emitted
    print("refused calls per record:", round(refused))


async def main():
    await run(None)
    await run(AdaptiveRate())


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
