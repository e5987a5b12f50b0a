import trio
from trio.testing import MockClock

SECONDS = {
    "Oslo": 0.5,
    "Rome": 0.4,
    "Lima": 2.0,
    "Cairo": 0.6,
    "Quito": 0.7,
    "Perth": 0.9,
}


async def weather(city):
    await trio.sleep(SECONDS[city])
    return f"{city}: fine"


async def show(city):
    print(f"{await weather(city):12} after {trio.current_time():.1f} s")


async def main():
    async with trio.open_nursery() as nursery:
        for city in SECONDS:
            nursery.start_soon(show, city)


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
