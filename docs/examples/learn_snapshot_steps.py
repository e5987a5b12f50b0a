import trio
from trio.testing import MockClock

from trio_asyncio_io import ordered_wait

SECONDS = {"a": 0.3, "b": 0.1, "c": 0.3, "d": 0.2, "e": 0.1}


async def call(name):
    await trio.sleep(SECONDS[name])
    return name.upper()


def text_of(snapshot):
    texts = [
        each.element if each.results is None else f"{each.element}={each.results[0]}"
        for each in snapshot.elements
    ]
    return " ".join(texts) or "nothing"


async def watch(results):
    for instant in (0.05, 0.15, 0.35, 0.45, 0.55):
        await trio.sleep_until(instant)
        print(
            f"{trio.current_time():.2f}  in the snapshot: {text_of(results.snapshot())}"
        )


async def main():
    async with (
        trio.open_nursery() as nursery,
        ordered_wait("abcde", call, capacity=2, buffer=4, timeout=5.0) as results,
    ):
        nursery.start_soon(watch, results)
        async for result in results:
            print(f"{trio.current_time():.2f}  received {result}")


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
