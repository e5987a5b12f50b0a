"""Numbers for people: with separators, three digits and units."""

from __future__ import annotations

from math import floor, inf, log10

__all__ = ["amount", "duration", "plural"]

UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
THREE_DIGITS = 100
ROUNDED_UP = 0.9995  # from here on, three digits round to the next power of ten


def amount(number: float) -> str:
    """A number: whole with separators, or with three digits."""
    if number >= THREE_DIGITS or number == int(number):
        return f"{number:,.0f}"
    text = f"{number:.{max(0, 2 - floor(log10(abs(number))))}f}"
    return text.rstrip("0").rstrip(".")


def duration(seconds: float) -> str:
    """Seconds, with three digits and a unit, such as "30 µs", "129 ms" or "1.4 s".

    Args:
        seconds: Not negative; may be infinite.

    Example:
        >>> from trio_asyncio_io.embedding import duration
        >>> duration(3e-05), duration(0.1294), duration(1.4), duration(1234.5)
        ('30 µs', '129 ms', '1.4 s', '1,234 s')
    """
    if seconds == inf:
        return "∞"
    if not seconds:
        return "0 s"
    scale, unit = next((each for each in UNITS if seconds >= ROUNDED_UP * each[0]), UNITS[-1])
    return f"{amount(seconds / scale)} {unit}"


def plural(count: int, noun: str) -> str:
    """A count and a noun whose plural ends in s."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
