import trio
from trio.testing import MockClock

from trio_asyncio_io import FixedDelay, ordered_wait, transient
from trio_asyncio_io.gates import Gate


class PauseAfterFailure(Gate):
    def __init__(self, seconds):
        self.seconds = seconds
        self.until = 0.0

    def delay(self, now, weight):  # 0: the call may start
        return max(0.0, self.until - now)

    def ended(self, now, seconds, outcome, weight):
        if outcome.kind == "overload":
            self.until = now + self.seconds


async def call(number):
    started = trio.current_time()
    await trio.sleep(0.5)
    if number == 2 and started < 3:
        raise ConnectionError("the service restarts")
    return f"{number} at {started:.1f}"


async def main():
    async with ordered_wait(
        range(6),
        call,
        capacity=2,
        timeout=60.0,
        retry=FixedDelay(3, 0.1, retry_on=transient),
        gate=PauseAfterFailure(10.0),
    ) as results:
        print(", ".join([result async for result in results]))
        print(results.statistics().seconds_by_gate)


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
