"""The persistent cache."""

# The layout:
#
#     policy            the policy `persistent`
#     group_commit      one thread call at a time, for all requests that have arrived
#     store             results in an SQLite file
#     name              identifies a function and its arguments in every process

from .policy import persistent
from .store import CacheError

__all__ = ["CacheError", "persistent"]
