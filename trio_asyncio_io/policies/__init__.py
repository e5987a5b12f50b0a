"""Policies: each wraps a function and gives a function.

They compose, and the order of composition is the meaning: `cached(single_flight(fetch))` looks into the cache
first and shares the request if it must be made; a retry strategy of the operator goes around both.

`CacheError` is raised by `persistent`, when its file cannot be used.
"""

# The layout:
#
#     _cached  _single_flight  _grouped  _persistent  _rate_limited     the policies, each on _policy
#     _shared  _fresh                                    a call that several tasks wait for, and its exception
#     _lifetime  _checks  _distinct_key                  for how long an answer is good; arguments; their keys
#     _users                                             several operators that have one policy open
#     _run                                               whether another Trio run, with another clock, has begun
#     _provenance                                        whether an answer was made, or was kept
#     _store  _trips  _stable_key  _name                 what is persistent: a file, the way there, its keys and names

from .._addresses import publish
from ._cached import cached
from ._grouped import grouped
from ._persistent import persistent
from ._provenance import from_cache
from ._rate_limited import rate_limited
from ._single_flight import single_flight
from ._store import CacheError

__all__ = ["CacheError", "cached", "from_cache", "grouped", "persistent", "rate_limited", "single_flight"]

publish(globals())
