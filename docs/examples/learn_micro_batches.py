from contextlib import suppress

import trio
from trio.testing import MockClock

from trio_asyncio_io import unordered_wait

SECONDS = {"b": 2.5, "g": 1.5}  # the first calls of b and g; all others take 0.3 s
started = []


async def call(name):
    is_first = name not in started
    started.append(name)
    await trio.sleep(SECONDS.get(name, 0.3) if is_first else 0.3)
    return name.upper()


async def micro_batch(rows, state, budget, **options):
    received = []
    async with unordered_wait(
        rows, call, timeout=60.0, restore=state, **options
    ) as results:
        with trio.move_on_after(budget), suppress(trio.EndOfChannel):
            while True:
                received.append(await results.receive())
    return received, results.snapshot()  # calls in flight are cancelled, rows are kept


async def main():
    state = None
    for rows in ("abcd", "efg", "hi"):
        start = trio.current_time()
        received, state = await micro_batch(rows, state, budget=1.0)
        seconds = trio.current_time() - start
        carried = [each.element for each in state.elements]
        print(f"{rows}: {seconds:.1f} s, output {sorted(received)}, carried {carried}")


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
