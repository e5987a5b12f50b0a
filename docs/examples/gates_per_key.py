import trio
from trio.testing import MockClock

from trio_asyncio_io import FixedDelay, transient, unordered_wait
from trio_asyncio_io.gates import AdaptiveRate, CircuitBreaker, PerKey


async def fetch(url):
    await trio.sleep(0.1)
    if url.startswith("down") and trio.current_time() < 60:
        raise ConnectionRefusedError
    return url


def host(url):
    return url.split("/")[0]


async def main():
    urls = [f"{name}/{number}" for number in range(500) for name in ("down", "up")]
    gate = PerKey([AdaptiveRate(), CircuitBreaker(calls=5)], key=host)
    retry = FixedDelay(9, 0.1, retry_on=transient)
    async with unordered_wait(
        urls, fetch, capacity=10, timeout=10.0, retry=retry, gate=gate
    ) as results:
        ended = {}
        async for url in results:
            ended[host(url)] = trio.current_time()
    print(f"up: all results after {ended['up']:.0f} s")
    print("down: all results within a minute and a half:", ended["down"] < 90)
    print(results.statistics().failed, "failures")


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
