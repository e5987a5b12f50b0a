"""An experiment with a leased rate whose source of tokens goes away."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

import trio

from ._counting import between, most_in_a_second, per_second
from ._experiment import Criterion, Experiment, Result
from ._gates import BACKOFF, none
from ._leases import SimulatedSource, leases
from ._run import GatesOfTask, simulate
from ._services import RateCappedService

__all__ = ["EXPERIMENTS"]

RATE, TASKS = 500, 16
KILLED, DOWN = "lease, driver killed", "lease, Redis down"
START, END = 10.0, 30.0
MOST = "most calls in a second"
BACK = "seconds until the calls are back"
DURING = "calls without a source"
REFUSED = "refused per record"


async def _refuse() -> None:
    raise ConnectionRefusedError


def _away(respond: Callable[[], Awaitable[None]] | None, comes_back: bool, quick: bool) -> Result:
    """The source does not answer, from `START` on. If it comes back, at `END`, it has lost its memory."""
    start, end = (3.0, 8.0) if quick else (START, END)
    source = SimulatedSource()
    service = RateCappedService(RATE)

    async def control() -> None:
        await trio.sleep_until(start)
        if respond is not None:
            source.respond = respond
        await trio.sleep_until(end)
        if comes_back:
            source.restart()

    gates: list[GatesOfTask] = list(none(TASKS)) if respond is None else [*leases(source, RATE, TASKS)]
    simulate(end + 10.0, service, gates, control=control)
    calls = sorted([*service.admitted, *service.refused])
    late = [at / 100 for at in range(500) if between(calls, end + at / 100, end + at / 100 + 0.5) < 0.9 * RATE / 2]
    values = {
        MOST: float(most_in_a_second(calls)),
        DURING: float(between(calls, start + 0.5, end)),
        BACK: max(late, default=0.0) + 0.01 if comes_back else None,
        REFUSED: len(service.refused) / len(service.admitted),
    }
    return Result(values, per_second(calls, end + 10.0, 0.5))


EXPERIMENTS = [
    Experiment(
        "source",
        "The source of a lease goes away",
        "16 tasks lease a `cluster_rate` of 500 calls per second. From second 10 on, the source does not answer: the "
        "driver is killed and refuses connections, or a Redis hangs, and is back at second 30, without its memory. "
        "The second in which the most calls start may begin at any instant",
        "Calls wait while the source is away. Calls without a source are counted from half a "
        "second after its end, when all tokens have expired. The calls are back at the last instant before which half "
        "a second had fewer than 90 % of the rate.",
        "",
        {MOST: "{:,.0f}", DURING: "{:,.0f}", BACK: "{:.2f}", REFUSED: "{:.3f}"},
        [
            *(Criterion(MOST, maximum=RATE, of=name) for name in (KILLED, DOWN)),
            *(Criterion(DURING, maximum=0, of=name) for name in (KILLED, DOWN)),
            Criterion(BACK, maximum=3.0, of=DOWN),
        ],
        {
            KILLED: partial(_away, _refuse, False),
            DOWN: partial(_away, trio.sleep_forever, True),
            BACKOFF: partial(_away, None, False),
        },
    )
]
