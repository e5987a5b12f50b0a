import random

import trio
from trio.testing import MockClock

from trio_asyncio_io import ExponentialBackoff, ordered_wait, transient
from trio_asyncio_io.gates import CircuitBreaker
from trio_asyncio_io.testing import Recorder


async def lookup(number):
    await trio.sleep(0.1)
    if 10 <= trio.current_time() < 70:
        raise ConnectionRefusedError
    return number


async def main():
    random.seed(1)
    recorder = Recorder(lookup)
    retry = ExponentialBackoff(5, initial=0.1, maximum=5.0, retry_on=transient)
    async with ordered_wait(
        range(5000),
        recorder,
        capacity=20,
        timeout=10.0,
        retry=retry,
        gate=CircuitBreaker(),
    ) as results:
        answers = [result async for result in results]
    print(len(answers), "answers,", results.statistics().failed, "failures")
    calls = sum(10.5 < call.started < 70 for call in recorder.calls)
    print(calls, "calls during the outage")


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
