"""One row of a forecast."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["ForecastRow"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastRow:
    """The forecast for one capacity.

    Attributes:
        capacity: The capacity, as in `ordered_wait`.
        seconds: The length of the run.
        low, high: The bounds of the 90 % interval of `seconds`.
        p50, p99: The median and the 99th percentile of a record's delay, from its first call to its output, in seconds.
        calls: All calls, retries included.
        refused: Calls that the service refuses, such as with a status 429.
        retried: Attempts after the first.
        timed_out: Records that time out.
        failed: Records whose last call fails.
        weight: The sum of the weights of all calls, such as tokens or money, counted as by a `Budget`; 0 for a sample
            without weights.
        is_tested: Whether the sample has reached a load as high as the capacity. Otherwise the row is a guess.
        simulated: The number of simulated records, from which the counts of the whole run are extrapolated.
        intervals: The 90 % interval of each number, by the name of its attribute.
    """

    capacity: int
    seconds: float
    low: float
    high: float
    p50: float
    p99: float
    calls: float
    refused: float
    retried: float
    timed_out: float
    failed: float
    weight: float
    is_tested: bool
    simulated: int
    intervals: Mapping[str, tuple[float, float]] = field(repr=False, hash=False)
