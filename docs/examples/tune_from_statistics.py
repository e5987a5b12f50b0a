import trio
from trio.testing import MockClock

from trio_asyncio_io import ordered_wait


async def look_up(number):  # call your service here
    await trio.sleep(2.0 if number % 50 == 0 else 0.1)
    return number


async def run(**limits):
    async with ordered_wait(range(2_000), look_up, timeout=10.0, **limits) as results:
        start = trio.current_time()
        async for _ in results:
            pass
        numbers, verdict = results.statistics(), results.explain()
    print(limits, f"{trio.current_time() - start:.0f} s")
    print(f"  p50 {numbers.latency.p50:.2f} s, p99 {numbers.latency.p99:.2f} s")
    print(f"  most at once: {numbers.peak_running}, held: {numbers.peak_buffered}")
    print(f"  limit: {verdict.limit}")


async def main():
    await run(capacity=10, buffer=10)  # as in Flink
    await run(capacity=10, buffer=1_000)
    await run(capacity=40, buffer=1_000)


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
