"""Policies: each wraps a function and returns a function.

Policies compose, and the order of composition is the meaning: `cached(single_flight(fetch))` looks into the cache
first, and shares the request if there is one to make. A retry strategy of the operator goes around both.

`persistent` raises a `CacheError` if its file cannot be used.
"""

# The layout:
#
#     _cached  _single_flight  _hedged  _gated  _persistent    the policies
#     _policy                      their base class: opening, closing, pickling, keys
#     _shared_call    a call that several tasks wait for
#     _race  _recent_latencies     several calls for one element, and percentiles of the last successes
#     _lifetime  _distinct_key     for how long a result is valid, and what it is found by
#     _users  _run_change          several operators, and several Trio runs, that use one policy
#     _from_cache                  the context variable that reports a cache hit

from .._addresses import publish
from ._cached import cached
from ._from_cache import from_cache
from ._gated import gated
from ._hedged import hedged
from ._persistent import CacheError, persistent
from ._single_flight import single_flight

__all__ = ["CacheError", "cached", "from_cache", "gated", "hedged", "persistent", "single_flight"]

publish(globals())
