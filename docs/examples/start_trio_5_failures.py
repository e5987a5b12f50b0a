from math import inf

import trio
from trio.testing import MockClock

from trio_asyncio_io import FixedDelay, ordered_wait, transient

SECONDS = {
    "Oslo": 0.5,
    "Rome": 0.4,
    "Lima": inf,
    "Cairo": 0.6,
    "Quito": 0.7,
    "Perth": 0.9,
}
fails_once = {"Rome"}


async def weather(city):
    await trio.sleep(SECONDS[city])
    if city in fails_once:
        fails_once.remove(city)
        raise ConnectionError("the service is restarting")
    return f"{city}: fine"


async def last_known(city):
    return f"{city}: fine?"


async def main():
    async with ordered_wait(
        SECONDS,
        weather,
        capacity=3,
        timeout=1.5,
        retry=FixedDelay(max_retries=3, delay=0.2, retry_on=transient),
        on_timeout=last_known,
    ) as results:
        async for result in results:
            print(f"{result:12} after {trio.current_time():.1f} s")


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
