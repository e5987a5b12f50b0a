"""The distinct key: a hashable that differs wherever the stable key of `persistent` does."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from ._stable_key import stable_key

__all__ = ["distinct_key"]


def distinct_key(value: Any) -> Hashable:
    """The value as a key that is equal only to the key of a value of the same type, also inside tuples and mappings.

    In Python 1, 1.0 and True are equal, and so are 0.0 and -0.0, Decimal("1") and Decimal("1.0"), and datetimes of two
    time zones that name one instant; NaN is not even equal to itself. As keys all of these differ, and NaN equals NaN.

    Args:
        value: A hashable. Two objects of one class of your own are equal if that class says so.
    """
    kind = type(value)
    if kind is str:
        return value  # type: ignore[no-any-return] # nothing of another type equals it
    if isinstance(value, tuple):
        return (kind, *map(distinct_key, value))
    return kind, value if kind is int else _content(value)


def _content(value: Any) -> Hashable:
    if isinstance(value, float):
        return value.hex()
    if type(value) in (Decimal, datetime):
        return stable_key(value)
    if isinstance(value, frozenset):
        return frozenset(map(distinct_key, value))
    if isinstance(value, Mapping):
        return frozenset((distinct_key(key), distinct_key(item)) for key, item in value.items())
    return value  # type: ignore[no-any-return]
