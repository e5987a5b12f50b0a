"""The persistent cache."""

# The layout:
#
#     policy    the policy `persistent`, and what identifies a function and its arguments in every process
#     store     results in an SQLite file, and one thread call at a time for all requests that have arrived

from .policy import persistent
from .store import CacheError

__all__ = ["CacheError", "persistent"]
