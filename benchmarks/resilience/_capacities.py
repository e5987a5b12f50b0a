"""Experiments with a service that gets slower, or no faster, with more calls at once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf
from statistics import fmean

import trio

from trio_asyncio_io.gates import AdaptiveCapacity, Gate

from ._counting import between, per_second, sampler
from ._experiment import Criterion, Experiment, Points, Result
from ._run import simulate
from ._services import KneeService

__all__ = ["EXPERIMENTS", "measure_knee"]

OURS = "AdaptiveCapacity"
IN_FLIGHT = "in flight in the second half"
REFUSED = "503s per record"


def _contenders(run: Callable[..., Result], capacity: int, maximum: int) -> dict[str, partial[Result]]:
    """What `run` needs for each: a gate for each task, and its capacity."""
    return {
        OURS: partial(run, lambda: AdaptiveCapacity(8, maximum), maximum),
        _fixed(capacity): partial(run, lambda: None, capacity),
    }


def _fixed(capacity: int) -> str:
    return f"a fixed {capacity}"


def _knee(gate: Callable[[], Gate | None], capacity: int, quick: bool) -> Result:
    seconds = 3.0 if quick else 20.0
    service = KneeService(50, 0.02, queue=100)
    in_flight: Points = []
    control = sampler(in_flight, lambda: float(service.running), 0.25)
    simulate(seconds, service, [gate() for _ in range(8)], capacity=capacity, control=control)
    values = {
        "throughput": len(service.answered) / (50 / 0.02 * seconds),
        IN_FLIGHT: fmean(value for at, value in in_flight if at >= seconds / 2),
        REFUSED: service.refused / len(service.answered),
    }
    return Result(values, in_flight)


def measure_knee(
    gate: Callable[[], Gate | None],
    tasks: int,
    servers: int,
    latency: float,
    seconds: float,
    *,
    queue: float = inf,
    seed: int = 1,
) -> tuple[float, float]:
    """After 20 s: the share of the highest throughput, and the mean calls in the service, relative to its knee."""
    service = KneeService(servers, latency, queue)
    in_flight: Points = []
    control = sampler(in_flight, lambda: float(service.running), 0.25)
    simulate(seconds, service, [gate() for _ in range(tasks)], capacity=100, control=control, seed=seed)
    throughput = between(service.answered, 20, inf) / (servers / latency * (seconds - 20))
    return throughput, fmean(value for at, value in in_flight if at >= 20) / servers


FIRST = "in the first 20 s"
FROM_60, OF_4 = "in flight from a start of 60", "in flight of 4 tasks"


def _start(gate: Callable[[int], Gate | None], quick: bool) -> Result:
    seconds = 30.0 if quick else 60.0
    service = KneeService(20, 0.1)
    simulate(20.0, service, [gate(8)], capacity=100)
    values = {
        FIRST: len(service.answered) / (20 / 0.1 * 20),
        FROM_60: measure_knee(lambda: gate(60), 1, 20, 0.1, seconds)[1],
        OF_4: measure_knee(lambda: gate(8), 4, 20, 0.1, seconds)[1],
    }
    return Result(values, [])


def _far_away(gate: Callable[[], Gate | None], capacity: int, quick: bool) -> Result:
    seconds = 22.0 if quick else 60.0
    service = KneeService(1_000, 0.205)
    simulate(seconds, service, [gate()], capacity=capacity)
    possible = capacity / 0.205
    values = {
        "after 20 s": between(service.answered, 20, inf) / (possible * (seconds - 20)),
        "over all": len(service.answered) / (possible * seconds),
    }
    return Result(values, per_second(service.answered, seconds, 2.05))  # ten latencies


def _slower(gate: Callable[[], Gate | None], capacity: int, quick: bool) -> Result:
    seconds = 12.0 if quick else 30.0
    service = KneeService(1_000, 0.1)

    async def control() -> None:
        for latency in (0.3, 0.1):
            await trio.sleep(seconds)
            service.seconds = latency

    simulate(3 * seconds, service, [gate()], capacity=capacity, control=control)
    phases = [("at 100 ms", 0.1), ("at 300 ms", 0.3), ("at 100 ms again", 0.1)]
    values = {
        name: between(service.answered, number * seconds + 10, (number + 1) * seconds) / ((seconds - 10) * 16 / latency)
        for number, (name, latency) in enumerate(phases)
    }
    return Result(values, per_second(service.answered, 3 * seconds))


PERCENT = "{:.1%}"

EXPERIMENTS = [
    Experiment(
        "knee",
        "A service with a knee",
        "8 tasks with up to 100 slots each, for 20 s. The service has 50 servers of 20 ms, and answers 503 if 100 "
        "calls wait",
        "Calls in the service, of all tasks. More than 50 at once only wait there. Gradient2 and failsafe-go miss this "
        "knee: with several tasks, they never observe the latency without a queue.",
        "calls in flight",
        {"throughput": PERCENT, IN_FLIGHT: "{:.0f}", REFUSED: "{:.3f}"},
        [Criterion("throughput", minimum=0.97), Criterion(IN_FLIGHT, maximum=75.0), Criterion(REFUSED, maximum=0.02)],
        _contenders(_knee, 100, 100),
    ),
    Experiment(
        "start",
        "A knee below the start, and a knee of four tasks",
        "The service has 20 servers of 0.1 s. One task with up to 100 slots has 20 s from a start of 8 calls; one "
        "starts with 60 calls; and four start with 8 each. The calls in flight are means after 20 s, compared with the "
        "knee",
        "A step up gains throughput although the service is saturated, if others lose it. The latency shows that.",
        "",
        {FIRST: PERCENT, FROM_60: "{:.2f}", OF_4: "{:.2f}"},
        [Criterion(FIRST, minimum=0.9), Criterion(FROM_60, maximum=1.2), Criterion(OF_4, maximum=1.6)],
        {
            OURS: partial(_start, lambda start: AdaptiveCapacity(start, 100)),
            _fixed(100): partial(_start, lambda start: None),
        },
    ),
    Experiment(
        "far",
        "A service that is only far away",
        "One task with up to 200 slots, for 60 s. Each call takes 205 ms, however many there are",
        "Here all 200 slots are right. Algorithms that grow slowly spend most of the run below that.",
        "",
        {"after 20 s": PERCENT, "over all": PERCENT},
        [Criterion("after 20 s", minimum=0.95), Criterion("over all", minimum=0.85)],
        _contenders(_far_away, 200, 200),
    ),
    Experiment(
        "slower",
        "The service becomes slower, and is not overloaded",
        "One task with up to 16 slots. A call takes 100 ms, from second 30 to 60 it takes 300 ms. The numbers leave "
        "out the first 10 s of each phase",
        "The throughput decides about the capacity, so a higher latency alone changes nothing.",
        "",
        {"at 100 ms": PERCENT, "at 300 ms": PERCENT, "at 100 ms again": PERCENT},
        [Criterion(name, minimum=0.97) for name in ("at 100 ms", "at 300 ms", "at 100 ms again")],
        _contenders(_slower, 16, 16),
    ),
]
