from collections import deque
from math import inf

import trio
from trio.testing import MockClock

SOURCE = ["a", "b", "wall 1", "c", "d", "wall 2", "e"]
SECONDS = {"a": 0.9, "b": 0.2, "c": 0.1, "d": inf, "e": 0.3}


async def call(value):
    await trio.sleep(SECONDS[value])
    return value.upper()


class Segment:
    def __init__(self, *done):
        self.running = set()
        self.done = deque(done)


class Order:
    def __init__(self):
        self.segments = deque([Segment()])

    def add(self, value):
        self.segments[-1].running.add(value)
        return self.segments[-1]

    def add_wall(self, wall):
        self.segments.append(Segment(wall))

    def take(self):
        """What may leave now: everything that is done in the first segment."""
        while True:
            first = self.segments[0]
            while first.done:
                yield first.done.popleft()
            if first.running or len(self.segments) == 1:
                return
            self.segments.popleft()


async def process(value, segment, order, slots):
    async with slots:
        result = await call(value)
    segment.running.remove(value)
    segment.done.append(result)
    emit(order)


def emit(order):
    for output in order.take():
        print(f"{trio.current_time():.1f} {output}")


async def main():
    order, slots = Order(), trio.CapacityLimiter(3)
    with trio.move_on_after(60.0) as patience:
        async with trio.open_nursery() as nursery:
            for element in SOURCE:
                if element.startswith("wall"):
                    order.add_wall(element)
                    emit(order)
                else:
                    segment = order.add(element)
                    nursery.start_soon(process, element, segment, order, slots)
                    await trio.lowlevel.checkpoint()  # it stands in line for a slot now
    if patience.cancelled_caught:
        behind = [each for segment in order.segments for each in segment.done]
        print("60.0 still waiting for", *order.segments[0].running, "before", behind)


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
