"""Distinct keys: hashables that differ wherever the stable keys of `persistent` differ."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

__all__ = ["distinct_key"]


def distinct_key(value: Any) -> Hashable:
    """A key that equals only the keys of equal values of the same type, also inside tuples and mappings.

    In Python 1, 1.0 and True are equal. So are 0.0 and -0.0, Decimal("1") and Decimal("1.0"), and datetimes of two time
    zones for the same instant. NaN does not even equal itself. Their distinct keys differ, and those of NaN are equal.

    Args:
        value: A hashable. Objects of your own classes are equal if their class defines them so.
    """
    kind = type(value)
    if kind is str:
        return value  # type: ignore[no-any-return] # no value of another type equals it
    if isinstance(value, tuple):
        return (kind, *map(distinct_key, value))
    return kind, value if kind is int else _content(value)


def _content(value: Any) -> Hashable:
    if isinstance(value, float):
        return value.hex()
    if type(value) is Decimal:
        return str(value)
    if type(value) is datetime:
        return repr(value)  # has the fold and the zone
    if isinstance(value, frozenset):
        return frozenset(map(distinct_key, value))
    if isinstance(value, Mapping):
        return frozenset((distinct_key(key), distinct_key(item)) for key, item in value.items())
    return value  # type: ignore[no-any-return]
