import trio
from trio.testing import MockClock

from trio_asyncio_io import Observer, ordered_wait

SECONDS = {"a": 0.6, "b": 0.2, "c": 0.3, "d": 0.2}


async def call(name):
    await trio.sleep(SECONDS[name])
    return name.upper()


class Steps(Observer):
    """Prints each step of two of the records."""

    def show(self, element, step):
        if element in ("b", "c"):
            print(f"{trio.current_time():.1f} {element} {step}")

    def accepted(self, sequence, element):
        self.show(element, "accepted: it has a place in the buffer")

    def started(self, sequence, element):
        self.show(element, "started: it has a slot")

    def completed(self, sequence, element, attempts, seconds):
        self.show(element, "completed: it has its result, and frees its slot")

    def dequeued(self, sequence, element):
        self.show(element, "emitted: its place in the output order has come")

    def emitted(self, sequence, element):
        self.show(element, "received: it frees its place in the buffer")


async def main(observer=None):
    async with ordered_wait(
        "abcd", call, capacity=2, buffer=3, timeout=5.0, observer=observer
    ) as results:
        async for _ in results:
            await trio.sleep(0.15)  # the consumer needs some time for each result


if __name__ == "__main__":
    trio.run(main, Steps(), clock=MockClock(autojump_threshold=0))
