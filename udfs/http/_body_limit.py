"""BodyTooLargeError: the upper limit of a body, decoded and as it arrives."""

from __future__ import annotations

from typing import Final

import httpx

__all__ = ["BodyTooLargeError", "body_too_large", "check_body_limit", "received_limit", "too_large_text"]

# A coding can make a small body larger: at most by its own size and this
_SMALL_BYTES: Final = 64 * 1024


class BodyTooLargeError(httpx.RequestError):
    """The body of a response is larger than `max_body_bytes`. The rest was not read."""


def check_body_limit(max_body_bytes: int | None) -> None:
    """Check the limit that a user has given.

    Raises:
        ValueError: It is below 1.
    """
    if max_body_bytes is not None and not max_body_bytes >= 1:
        raise ValueError(f"max_body_bytes must be at least 1, got {max_body_bytes}")


def body_too_large(limit: float) -> BodyTooLargeError:
    """Return the error for a body beyond this limit, without its request."""
    return BodyTooLargeError(too_large_text(limit))


def too_large_text(limit: float) -> str:
    """Return what is wrong with a body beyond this limit, and what to do."""
    return f"the body is larger than the {limit:,} bytes (max_body_bytes) that are allowed: allow more, or request less"


def received_limit(limit: float, *, is_coded: bool) -> float:
    """Return the upper limit of what may arrive of a body whose decoded size has this limit."""
    return 2 * limit + _SMALL_BYTES if is_coded else limit
