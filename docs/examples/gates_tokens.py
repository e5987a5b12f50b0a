import trio
from trio.testing import MockClock

from trio_asyncio_io import ordered_wait
from trio_asyncio_io.gates import RateLimit, settle


def estimate(prompt):
    return 10 + len(prompt)  # an upper limit of the tokens


async def ask(prompt):
    started = trio.current_time()
    await trio.sleep(0.1)
    settle(20, "tokens")  # what the response reports
    return f"{prompt[:5]} started at {started:.1f}"


async def main():
    requests = RateLimit(60 / 60, burst=3, name="requests")
    tokens = RateLimit(1200 / 60, burst=60, weight=estimate, name="tokens")
    prompts = ["first" * 6, "second" * 5, "third" * 6, "fourth" * 5, "fifth" * 6]
    async with ordered_wait(
        prompts, ask, timeout=5.0, gate=[requests, tokens]
    ) as results:
        async for result in results:
            print(result)
    print(results.statistics().seconds_by_gate)


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
