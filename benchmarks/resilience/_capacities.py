"""Experiments with a service that gets slower, or no faster, with more calls at once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf
from statistics import fmean

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
        "far",
        "A service that is only far away",
        "One task with up to 200 slots, for 60 s. Each call takes 205 ms, however many there are",
        "Here all 200 slots are right. Algorithms that grow slowly spend most of the run below that.",
        "",
        {"after 20 s": PERCENT, "over all": PERCENT},
        [Criterion("after 20 s", minimum=0.95), Criterion("over all", minimum=0.85)],
        _contenders(_far_away, 200, 200),
    ),
]
