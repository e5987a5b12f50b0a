import pickle
from collections import Counter
from itertools import islice

import trio
from trio.testing import MockClock

from trio_asyncio_io import unordered_wait

calls = Counter()


async def charge(order):
    calls[order] += 1
    await trio.sleep(0.1 * order)
    return f"receipt {order}"


async def main():
    orders = range(1, 9)
    async with unordered_wait(orders, charge, capacity=4, timeout=5.0) as results:
        receipts = [await results.receive() for _ in range(3)]
        await trio.sleep(0.15)  # another call completes: nobody has received it
        saved = pickle.dumps(results.snapshot())

    snapshot = pickle.loads(saved)
    rest = islice(orders, snapshot.taken, None)  # from the source's next position
    async with unordered_wait(rest, charge, timeout=5.0, restore=snapshot) as results:
        receipts += [receipt async for receipt in results]

    print("receipts, each once:", sorted(receipts) == [f"receipt {n}" for n in orders])
    print("calls that were repeated:", [n for n in orders if calls[n] > 1])


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
