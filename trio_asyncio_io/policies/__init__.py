"""Policies: each wraps a function and returns a function.

Policies compose, and the order of composition is the meaning: `cached(single_flight(fetch))` looks into the cache
first, and shares the request if there is one to make. A retry strategy of the operator goes around both.
"""

# The layout:
#
#     _cached  _single_flight  _hedged  _gated  _persistent    the policies
#     _policy         their base class: users, Trio runs, pickling, keys

from .._values.public import publish
from ._cached import cached, from_cache
from ._gated import gated
from ._hedged import hedged
from ._persistent import CacheError, persistent
from ._single_flight import single_flight

__all__ = ["CacheError", "cached", "from_cache", "gated", "hedged", "persistent", "single_flight"]

publish(globals())
