import trio
from trio.testing import MockClock

from trio_asyncio_io import FixedDelay, Observer, ordered_wait, transient
from trio_asyncio_io.testing import Scripted, Step, fails_first


class PrintingObserver(Observer):
    def started(self, sequence, element):
        print(f"{trio.current_time():.1f} {element} starts")

    def attempt_failed(self, sequence, element, attempt, error):
        print(f"{trio.current_time():.1f} {element}: call {attempt} raised {error}")

    def completed(self, sequence, element, attempts, seconds):
        now = trio.current_time()
        print(f"{now:.1f} {element} took {seconds:.1f} s, calls: {attempts}")


async def main():
    b = fails_first(1, ConnectionError("busy"), then=Step(0.2))
    lookup = Scripted({"b": b}, default=Step(0.3))
    retry = FixedDelay(3, 1.0, retry_on=transient)
    async with ordered_wait(
        "ab", lookup, timeout=5.0, retry=retry, observer=PrintingObserver()
    ) as results:
        async for _ in results:
            pass


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
