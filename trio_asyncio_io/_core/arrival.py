"""The theoretical arrival time of the generic cell rate algorithm (ITU-T I.371), which is a token bucket."""

from __future__ import annotations

__all__ = ["ROUNDING", "arrival_after"]

# Seconds; more than those by which two instants that an operator takes for one may differ. It costs a rate of 1,000
# per second two millionths
ROUNDING = 2e-9


def arrival_after(start: float, weight: float, rate: float) -> float:
    """The instant at which a call of this weight that starts at `start` has been paid back.

    Sums of 0.1 are soon a little too low, and then eleven calls would start in one second. So an instant that had to be
    rounded is later by `ROUNDING`. One that is exact, such as a sum of 0.25, stays exact.
    """
    seconds = weight / rate
    arrival = start + seconds
    is_exact = arrival - start == seconds and seconds * rate == weight
    return arrival if is_exact else arrival + ROUNDING
