"""BodyTooLargeError: the upper limit of a body, decoded and as it arrives."""

from __future__ import annotations

from typing import Final

import httpx

__all__ = ["BodyTooLargeError", "body_too_large", "received_limit"]

# A coding can make a small body larger: at most by its own size and this
_SMALL_BYTES: Final = 64 * 1024


class BodyTooLargeError(httpx.RequestError):
    """The body of a response is larger than `max_body_bytes`. The rest was not read."""


def body_too_large(limit: float) -> BodyTooLargeError:
    """Return the error for a body beyond this limit, without its request."""
    return BodyTooLargeError(f"the body is larger than the {limit:,} bytes (max_body_bytes) that are allowed")


def received_limit(limit: float, *, is_coded: bool) -> float:
    """Return the upper limit of what may arrive of a body whose decoded size has this limit."""
    return 2 * limit + _SMALL_BYTES if is_coded else limit
