"""Names for parameters: the same in each run, so that a test can be named, and its runs compared."""

from __future__ import annotations

import re

__all__ = ["told"]


def told(value: object) -> str:
    """The value as its `str`, without the addresses in it."""
    return re.sub(r" at 0x[0-9a-f]+", "", str(value))
