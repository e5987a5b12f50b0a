import trio
from trio.testing import MockClock

from trio_asyncio_io import unordered_wait


async def echo_after(seconds):
    await trio.sleep(seconds)
    return seconds


async def main():
    async with unordered_wait(
        [0.1, 0.2, 0.3, 9.0], echo_after, capacity=2, timeout=1.0, on_error="skip"
    ) as results:
        async for _ in results:
            pass
        numbers = results.statistics()
    print("at once:", numbers.peak_running)
    print("completed:", numbers.completed, "timed out:", numbers.timed_out)
    print(f"waited for a slot: {numbers.slot_wait_seconds:.1f} s")
    print(f"half took at most {numbers.latency.p50:.2f} s")
    print(f"99 of 100 took at most {numbers.latency.p99:.2f} s")


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
