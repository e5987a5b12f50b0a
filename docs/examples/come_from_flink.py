import trio
from trio.testing import MockClock

from trio_asyncio_io import (
    AsyncFunction,
    ExponentialBackoff,
    StreamRecord,
    Watermark,
    transient,
    unordered_wait,
)


class WeatherRequest(AsyncFunction):
    async def open(self):
        self.seconds = {"Oslo": 0.5, "Rome": 0.1, "Lima": 9.0, "Cairo": 0.1}

    async def invoke(self, city):  # asyncInvoke
        await trio.sleep(self.seconds[city])
        return f"{city}: fine"

    async def timeout(self, city):
        return f"{city}: unknown"


async def main():
    cities = [
        StreamRecord("Oslo", timestamp=1),
        StreamRecord("Rome", timestamp=2),
        StreamRecord("Lima", timestamp=3),
        Watermark(3),
        StreamRecord("Cairo", timestamp=4),
    ]
    async with unordered_wait(
        cities,
        WeatherRequest(),
        timeout=1.0,
        capacity=100,
        retry=ExponentialBackoff(3, initial=0.1, maximum=1.0, retry_on=transient),
    ) as results:
        async for result in results:
            print(result)


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
