"""Policies: each wraps a function and gives a function.

They compose, and the order of composition is the meaning: `cached(single_flight(fetch))` looks into the cache
first and shares the request if it must be made; a retry strategy of the operator goes around both.
"""

from ._cached import cached
from ._rate_limited import rate_limited
from ._single_flight import single_flight

__all__ = ["cached", "rate_limited", "single_flight"]
