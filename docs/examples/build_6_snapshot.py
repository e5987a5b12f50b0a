import pickle
from collections import deque
from itertools import count

import trio
from trio.testing import MockClock

SECONDS = [0.2, 0.5, 0.1, 0.4]


async def call(number):
    await trio.sleep(SECONDS[number % 4])
    return f"result {number}"


class Entry:
    def __init__(self, value, result=None):
        self.value = value
        self.result = result
        self.has_result = trio.Event()


class Run:
    def __init__(self, source, snapshot=()):
        self.source = source
        self.restored = deque(Entry(*saved) for saved in snapshot)
        self.entries = deque()  # the promises
        self.places, self.arrived = trio.Semaphore(3), trio.Semaphore(0)

    async def feed(self, nursery):
        while True:
            await self.places.acquire()  # first a place, then a value
            restored = self.restored.popleft() if self.restored else None
            entry = restored or Entry(next(self.source))
            self.entries.append(entry)
            self.arrived.release()
            nursery.start_soon(self.process, entry)

    async def process(self, entry):
        if entry.result is None:
            entry.result = await call(entry.value)
        entry.has_result.set()

    async def receive(self):
        await self.arrived.acquire()
        await self.entries[0].has_result.wait()
        self.places.release()
        return self.entries.popleft().result

    def snapshot(self):
        return [(each.value, each.result) for each in [*self.entries, *self.restored]]


async def receive(run, number):
    async with trio.open_nursery() as nursery:
        nursery.start_soon(run.feed, nursery)
        for _ in range(number):
            result = await run.receive()
            print(f"{trio.current_time():.1f} {result}")
        nursery.cancel_scope.cancel()  # every call ends here


async def main():
    source = count()
    run = Run(source)
    await receive(run, 2)
    saved = pickle.dumps(run.snapshot())
    print("kept:", pickle.loads(saved))
    await receive(Run(source, pickle.loads(saved)), 4)


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
