"""Bucket IDs: numbers that Spark's hash partitioning distributes evenly, one per partition."""

from __future__ import annotations

from functools import cache
from itertools import count

_BITS = 0xFFFF_FFFF


@cache
def bucket_ids(partitions: int) -> tuple[int, ...]:
    """One number for each partition of the stateful stage, whose hash Spark assigns to that partition.

    With consecutive numbers, some partitions would have several buckets and others none.
    """
    found: dict[int, int] = {}
    for number in count():
        found.setdefault(hash_of(number) % partitions, number)
        if len(found) == partitions:
            break
    return tuple(found[partition] for partition in range(partitions))


def hash_of(number: int) -> int:
    """Spark's `hash` of an int of 0 or more: 32-bit Murmur3 with seed 42."""
    mixed = _rotated(number * 0xCC9E2D51, 15) * 0x1B873593
    h = (_rotated(42 ^ mixed & _BITS, 13) * 5 + 0xE6546B64) & _BITS ^ 4
    h = (h ^ h >> 16) * 0x85EBCA6B & _BITS
    h = (h ^ h >> 13) * 0xC2B2AE35 & _BITS
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h


def _rotated(number: int, bits: int) -> int:
    low = number & _BITS
    return (low << bits | low >> 32 - bits) & _BITS
