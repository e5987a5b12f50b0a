"""Numbers for people: with separators, three digits and units."""

from __future__ import annotations

from math import inf

__all__ = ["amount", "duration", "plural"]

# Numbers from here on are written without decimals
THREE_DIGITS = 100


def amount(number: float) -> str:
    """A number: whole with separators, or with three digits."""
    return f"{number:,.0f}" if number >= THREE_DIGITS or number == int(number) else f"{number:.3g}"


def duration(seconds: float) -> str:
    """Seconds, with three digits and a unit."""
    if seconds == inf:
        return "∞"
    for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "μs")):
        if seconds >= 0.9995 * scale:
            return f"{seconds / scale:.3g} {unit}" if seconds < 10 * THREE_DIGITS else f"{seconds:,.0f} s"
    return f"{seconds * 1e9:.3g} ns" if seconds else "0"


def plural(count: int, noun: str) -> str:
    """A count and a noun whose plural ends in s."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
