import trio
from trio.testing import MockClock

from trio_asyncio_io import FixedDelay, transient, unordered_wait

ARRIVES = {7: 300.0, 8: 240.0, 9: 1e9}  # seconds until the profile of a new user exists


async def profile(user):
    await trio.sleep(0.2)  # the call
    return f"user {user}" if trio.current_time() >= ARRIVES.get(user, 0) else None


async def main():
    async with unordered_wait(
        range(100),
        profile,
        capacity=2,
        timeout=600.0,  # backoffs included
        retry=FixedDelay(
            20, 30.0, retry_on=transient, retry_on_result=lambda found: found is None
        ),
        on_error="skip",  # of a user who has no profile after 600 s
    ) as results:
        ends = [trio.current_time() async for _ in results]
    early = sum(seconds < 60 for seconds in ends)
    print(f"{len(ends)} found, {early} of them in the first minute")
    print(f"the last after {ends[-1]:.0f} s")
    numbers = results.statistics()
    print(f"{numbers.retried} retries, {numbers.skipped} skipped")


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
