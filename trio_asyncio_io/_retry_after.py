"""Retry-After: how long a service asks its caller to wait, as its exception carries it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

__all__ = ["retry_after"]


def retry_after(exception: Exception) -> float | None:
    """The seconds that the exception says one should wait before the next call; None if it says nothing.

    It says so in an attribute `retry_after`, in seconds, or in the `Retry-After` header of its `response` (RFC 9110,
    section 10.2.3), as `httpx.HTTPStatusError` has one. A date is counted from the response's own `Date`, so that the
    clocks of service and caller may differ. What cannot be read says nothing.

    Returns:
        Finite seconds, not negative, or None.

    Example:
        >>> class Busy(Exception):
        ...     retry_after = 2.5
        >>> retry_after(Busy()), retry_after(ValueError("busy"))
        (2.5, None)
    """
    told = getattr(exception, "retry_after", None)
    headers = getattr(getattr(exception, "response", None), "headers", None)
    if told is None and isinstance(headers, Mapping):
        named = {str(name).lower(): value for name, value in headers.items()}
        told = _of_header(named.get("retry-after"), named.get("date"))
    return _as_seconds(told)


def _of_header(value: Any, date: Any) -> Any:
    if value is None or str(value).strip().isdigit():
        return value
    try:
        until = parsedate_to_datetime(str(value))
        since = datetime.now(UTC) if date is None else parsedate_to_datetime(str(date))
        return max(0.0, (until - since).total_seconds())
    except (TypeError, ValueError):
        return None


def _as_seconds(told: Any) -> float | None:
    try:
        seconds = float(told)
    except (TypeError, ValueError):
        return None
    return seconds if 0 <= seconds < math.inf else None
