import trio
from trio.testing import MockClock

from trio_asyncio_io import keyed_wait, ordered_wait, unordered_wait

# "ann:7" is a payment of Ann whose call takes 0.7 s
PAYMENTS = ["ann:7", "bob:3", "cat:1", "bob:2", "ann:4", "cat:5"]


async def call(payment):
    await trio.sleep(int(payment[-1]) / 10)
    return payment


def account(payment):
    return payment[:3]


async def show(name, wait, **options):
    start = trio.current_time()
    async with wait(PAYMENTS, call, capacity=6, timeout=5.0, **options) as results:
        seen = [
            f"{each} at {trio.current_time() - start:.1f}" async for each in results
        ]
    print(f"{name:<10}", ", ".join(seen))


async def main():
    await show("ordered", ordered_wait)
    await show("unordered", unordered_wait)
    await show("keyed", keyed_wait, key=account)


if __name__ == "__main__":
    # A virtual clock: sleeping takes no time, and instants are exact
    trio.run(main, clock=MockClock(autojump_threshold=0))
