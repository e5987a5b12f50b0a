"""Retry-After: how long a service asks its caller to wait, as its exception carries it."""

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

_DELAY = re.compile(r"[0-9]+")
_ASCTIME = re.compile(r"\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}")
_TWO_DIGIT_YEAR = re.compile(r"\w+, *\d\d-\w+-(\d\d) ")
_PIVOT_YEARS = 50


def retry_after(exception: BaseException) -> float | None:
    """The seconds to wait before the next call, as the exception's sender asks for; None if it does not ask.

    They are read from an attribute `retry_after`, in seconds, or from the `Retry-After` header (RFC 9110, section
    10.2.3) of the exception's `response`, as `httpx.HTTPStatusError` has one, or of the exception itself, as in aiohttp
    and urllib. A header holds whole seconds or a date in one of the three forms of HTTP. A date is counted from the
    response's own `Date`, so that the clocks of service and caller may differ; one in the past gives 0. For a group it
    is the longest wait of its exceptions. There is no upper limit: the element's deadline is the limit.

    Never raises: a value that cannot be read is ignored.

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
        except Exception:  # noqa: BLE001, S112 - a bad value must not replace the service's own error
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
            named = {str(name).lower(): value for name, value in headers.items()}
            if (value := named.get("retry-after")) is not None:
                return _of_header(str(value).strip(), named.get("date"))
    return None


def _headers_of(exception: BaseException) -> Iterator[Any]:
    response = attribute_of(exception, "response")
    if isinstance(response, dict):  # botocore's
        yield attribute_of(response.get("ResponseMetadata"), "get")("HTTPHeaders")
    yield attribute_of(response, "headers")
    yield attribute_of(exception, "headers")


def _of_header(value: str, date: Any) -> float:
    if _DELAY.fullmatch(value):
        return float(value)
    since = datetime.now(UTC) if date is None else _date_of(str(date))
    return max(0.0, (_date_of(value) - since).total_seconds())


def _date_of(text: str) -> datetime:
    """A date in one of the forms of HTTP: that of RFC 5322, that of RFC 850 with its two-digit year, or asctime's.

    Raises:
        TypeError, ValueError, OverflowError: It is not a date, or its time zone is unknown.
    """
    date = parsedate_to_datetime(text if _is_plain(text) else "")
    if _ASCTIME.fullmatch(text):
        return date.replace(tzinfo=UTC)
    if two_digits := _TWO_DIGIT_YEAR.match(text):
        return date.replace(year=_full_year(int(two_digits[1]), datetime.now(UTC).year))
    return date


def _full_year(two_digits: int, now: int) -> int:
    """The year of this century, or that of the last one if it would be more than 50 years in the future."""
    year = now - now % 100 + two_digits
    return year - 100 if year > now + _PIVOT_YEARS else year


def _is_plain(text: str) -> bool:
    # `int` and `float` take digits of all scripts, and underscores between them
    return text.isascii() and "_" not in text
