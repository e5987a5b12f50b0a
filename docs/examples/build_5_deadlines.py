from itertools import count
from math import inf

import trio
from trio.testing import MockClock

# The seconds of each attempt. Below zero: it raises after these seconds
ATTEMPTS = {"a": [-0.2, 0.3], "b": [inf], "c": [0.1], "d": [0.4], "e": [-0.1, 0.1]}


async def call(value, attempt):
    seconds = ATTEMPTS[value][attempt - 1]
    await trio.sleep(abs(seconds))
    if seconds < 0:
        raise OSError(value)
    return value.upper()


async def call_in_time(value, slots):
    with trio.move_on_after(2.0):  # the deadline
        for attempt in count(1):
            async with slots:  # a slot for the call ...
                try:
                    return await call(value, attempt)
                except OSError:
                    print(f"{trio.current_time():.1f} {value} fails")
            await trio.sleep(0.5)  # ... and none for the backoff
    return f"no result for {value}"


async def process(value, slots, done):
    done[value] = await call_in_time(value, slots)
    print(f"{trio.current_time():.1f} {done[value]}")


async def main():
    taken, done, slots = [], {}, trio.CapacityLimiter(2)
    with trio.move_on_after(1.0):  # somebody stops the program
        async with trio.open_nursery() as nursery:
            for value in ATTEMPTS:
                taken.append(value)
                nursery.start_soon(process, value, slots, done)
                await trio.lowlevel.checkpoint()  # it stands in line for a slot now
    print("1.0 stopped; lost:", sorted(set(taken) - set(done)))


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
