import trio
from trio.testing import MockClock

from trio_asyncio_io import Watermark, ordered_wait, unordered_wait


async def plane(flight):
    await trio.sleep(0.3 if flight == "UA1" else 0.1)
    return flight, "737"


async def weather(found):
    await trio.sleep(0.2)
    return *found, "rain"


async def main():
    flights = ["UA1", "UA2", Watermark("noon"), "UA3"]
    async with (
        unordered_wait(flights, plane, timeout=5.0) as planes,
        ordered_wait(planes, weather, timeout=5.0) as results,  # its source: the first
    ):
        async for result in results:
            print(f"{trio.current_time():.1f}", result)


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
