import json
from math import inf
from pathlib import Path

import trio
from trio.testing import MockClock

from trio_asyncio_io import FixedDelay, Watermark, ordered_wait, transient
from trio_asyncio_io.testing import Scripted, Step
from trio_asyncio_io.trace import TraceRecorder

CITIES = ["Oslo", "Rome", "Lima", Watermark("noon"), "Cairo", "Quito", "Perth"]

lookup = Scripted(
    {
        "Oslo": Step(0.5),
        "Rome": [Step(0.4, error=ConnectionError()), Step(0.3)],
        "Lima": Step(inf),
        "Perth": Step(0.9),
    },
    default=Step(0.6),
)
last_known = Scripted(default=Step(0.15))


async def main():
    with TraceRecorder("run.json", name="weather", values=True) as recorder:
        async with ordered_wait(
            CITIES,
            lookup,
            capacity=3,
            timeout=1.7,
            retry=FixedDelay(2, 0.25, retry_on=transient),
            on_timeout=last_known,
            observer=recorder,
        ) as results:
            async for _ in results:
                pass


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
    print(json.loads(Path("run.json").read_bytes())["otherData"])
