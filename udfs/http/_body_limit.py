"""The upper limit of a body: its range, and the text of its error."""

from __future__ import annotations

__all__ = ["check_body_limit", "too_large_text"]


def check_body_limit(max_body_bytes: int | None) -> None:
    """Check the limit that a user has given.

    Raises:
        ValueError: It is below 1.
    """
    if max_body_bytes is not None and not max_body_bytes >= 1:
        raise ValueError(f"max_body_bytes must be at least 1, got {max_body_bytes}")


def too_large_text(max_body_bytes: float) -> str:
    """Return what is wrong with a body that is larger than the limit, and what to do."""
    return f"the body is larger than max_body_bytes={max_body_bytes:,}: give a larger limit, or request less"
