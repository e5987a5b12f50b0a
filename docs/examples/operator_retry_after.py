import math

import trio
from trio.testing import MockClock

from trio_asyncio_io import FixedDelay, ordered_wait, transient
from trio_asyncio_io.testing import Recorder, Scripted, Step


class BusyError(Exception):
    retry_after = 2.0  # seconds, from the service


async def main():
    script = Scripted({"a": [Step(math.inf), Step(error=BusyError), Step(0.5)]})
    recorder = Recorder(script)
    retry = FixedDelay(3, 0.1, attempt_timeout=1.0, retry_on=transient)
    async with ordered_wait(["a"], recorder, timeout=10.0, retry=retry) as results:
        print([result async for result in results])
        print([round(call.started, 1) for call in recorder.calls])


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
