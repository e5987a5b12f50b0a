"""One row of a forecast."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["ForecastRow"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastRow:
    """The forecast for one capacity.

    Attributes:
        capacity: As in `ordered_wait`.
        seconds: The length of the run.
        low, high: The interval of 90 % of `seconds`.
        p50, p99: The delay of a record, from its first call to its output, in seconds: its median and 99th percentile.
        calls: All calls, retries included.
        refused: Calls that the service refuses, such as with a status 429.
        retried: Attempts after the first.
        timed_out: Records that time out.
        failed: Records whose last call fails.
        weight: What all calls weigh together, such as tokens or money, as a `Budget` counts it; 0 for a sample without
            weights.
        latency: The mean duration of a record's calls and backoffs, in seconds.
        is_tested: Whether the sample has reached a load as high as the capacity. Otherwise the row is a guess.
        simulated: How many records were simulated. The counts of calls and of records are theirs, multiplied.
        intervals: The interval of 90 % of each number, by its name.
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
    latency: float
    is_tested: bool
    simulated: int
    intervals: Mapping[str, tuple[float, float]] = field(repr=False, hash=False)
