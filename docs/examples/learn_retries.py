from math import inf

import trio
from trio.testing import MockClock

from trio_asyncio_io import ExponentialBackoff, ordered_wait, transient
from trio_asyncio_io.testing import Recorder, Scripted, Step


class BusyError(Exception):
    status_code = 429
    retry_after = 1.0  # seconds, from the service


class MissingError(Exception):
    status_code = 404


BREAKS = Step(0.3, error=ConnectionError)
SCRIPT = {
    "flaky": [BREAKS, BREAKS, Step(0.3)],
    "busy": [Step(0.1, error=BusyError), Step(0.3)],
    "hangs once": [Step(inf), Step(0.3)],
    "missing": Step(0.2, error=MissingError),
    "down": Step(0.5, error=ConnectionError),
}


async def main(**options):
    calls = Recorder(Scripted(SCRIPT))
    retry = ExponentialBackoff(
        9, 0.2, 1.6, jitter=0.0, retry_on=transient, attempt_timeout=1.0
    )
    async with ordered_wait(
        SCRIPT, calls, capacity=5, timeout=3.0, retry=retry, on_error="skip", **options
    ) as results:
        print([result async for result in results])
    for name in SCRIPT:
        started = [call.started for call in calls.calls if call.value == name]
        print(f"{name}: calls at", ", ".join(f"{instant:.1f}" for instant in started))


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
