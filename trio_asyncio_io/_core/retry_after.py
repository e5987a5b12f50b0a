"""The delay that a service requests with `Retry-After`, read from an exception."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from email.utils import parsedate_to_datetime
from numbers import Real
from typing import Any

from .probe import attribute_of, leaves_of

__all__ = ["retry_after"]

_DELAY = re.compile(r"[0-9]+(\.[0-9]+)?")
_ASCTIME = re.compile(r"\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}")
_TWO_DIGIT_YEAR = re.compile(r"\w+, *\d\d-\w+-(\d\d) ")
_PIVOT_YEARS = 50


def retry_after(exception: BaseException) -> float | None:
    """The seconds that a service requests to wait before the next call; None if the exception has no such request.

    Sources, in this order:

    1. an attribute `retry_after` of the exception, in seconds;
    2. the `Retry-After` header (RFC 9110, section 10.2.3) of its `response` (httpx, requests, botocore);
    3. the `Retry-After` header of the exception itself (aiohttp, urllib).

    The header contains seconds, which some services send with a fraction, or a date in one of HTTP's three formats. The
    delay until a date is relative to the `Date` of the same response, so the two clocks may differ; a date in the past
    gives 0. A group gives the longest delay of its exceptions. The delay has no upper limit: the element's deadline
    limits it.

    Never raises. A value that cannot be parsed is ignored.

    Returns:
        Finite seconds, not negative, or None.

    Example:
        >>> class Busy(Exception):
        ...     retry_after = 2.5
        >>> retry_after(Busy()), retry_after(ValueError("busy"))
        (2.5, None)
    """
    waits = [_seconds_of(leaf) for leaf in leaves_of(exception)]
    return max((seconds for seconds in waits if seconds is not None), default=None)


def _seconds_of(exception: BaseException) -> float | None:
    for read in (_of_attribute, _of_headers):
        try:
            seconds = read(exception)
        except Exception:  # noqa: BLE001, S112 - a bad value must not hide the service's own error
            continue
        if seconds is not None and 0 <= seconds < math.inf:
            return seconds
    return None


def _of_attribute(exception: BaseException) -> float | None:
    value = attribute_of(exception, "retry_after")
    is_number = isinstance(value, Real | Decimal) and not isinstance(value, bool)
    return float(value) if is_number or (isinstance(value, str) and _is_plain(value)) else None


def _of_headers(exception: BaseException) -> float | None:
    for headers in _headers_of(exception):
        if callable(attribute_of(headers, "items")):
            by_name = {str(name).lower(): value for name, value in headers.items()}
            if (value := by_name.get("retry-after")) is not None:
                return _of_header(str(value).strip(), by_name.get("date"))
    return None


def _headers_of(exception: BaseException) -> Iterator[Any]:
    response = attribute_of(exception, "response")
    if isinstance(response, dict):  # botocore
        yield attribute_of(response.get("ResponseMetadata"), "get")("HTTPHeaders")
    yield attribute_of(response, "headers")
    yield attribute_of(exception, "headers")


def _of_header(value: str, date: Any) -> float:
    if _DELAY.fullmatch(value):
        return float(value)
    since = datetime.now(UTC) if date is None else _date_of(str(date))
    return max(0.0, (_date_of(value) - since).total_seconds())


def _date_of(text: str) -> datetime:
    """Parse a date in one of HTTP's formats: RFC 5322, RFC 850 with its two-digit year, or asctime.

    Raises:
        TypeError, ValueError, OverflowError: The text is not a date, or its time zone is unknown.
    """
    date = parsedate_to_datetime(text if _is_plain(text) else "")
    if _ASCTIME.fullmatch(text):
        return date.replace(tzinfo=UTC)
    if two_digits := _TWO_DIGIT_YEAR.match(text):
        return date.replace(year=_full_year(int(two_digits[1]), datetime.now(UTC).year))
    return date


def _full_year(two_digits: int, now: int) -> int:
    """The year in this century, or in the last one if it would be more than 50 years in the future."""
    year = now - now % 100 + two_digits
    return year - 100 if year > now + _PIVOT_YEARS else year


def _is_plain(text: str) -> bool:
    # `int` and `float` accept digits of all scripts, and underscores between them
    return text.isascii() and "_" not in text
