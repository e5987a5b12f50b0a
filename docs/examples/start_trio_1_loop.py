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
    await trio.sleep(SECONDS[city])  # in place of a call to a service
    return f"{city}: fine"


async def main():
    for city in SECONDS:
        print(f"{await weather(city):12} after {trio.current_time():.1f} s")


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
