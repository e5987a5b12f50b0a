"""The delay requested by an exception, in all formats that services use."""

from __future__ import annotations

import math
import urllib.error
from contextlib import closing
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from email.message import Message
from email.utils import format_datetime
from typing import Any

import pytest

from trio_asyncio_io import FixedDelay, ordered_wait, retry_after


class Response:
    def __init__(self, **headers: str) -> None:
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


class RefusedError(Exception):
    def __init__(self, **attributes: Any) -> None:
        super().__init__("refused")
        vars(self).update(attributes)


@pytest.mark.parametrize(
    ("exception", "seconds"),
    [
        (RefusedError(retry_after=1.5), 1.5),
        (RefusedError(retry_after=2), 2.0),
        (RefusedError(retry_after="3"), 3.0),
        (RefusedError(response=Response(Retry_After="7")), 7.0),
        (RefusedError(response=Response(retry_after=" 7 ")), 7.0),
        (RefusedError(retry_after=1.0, response=Response(Retry_After="7")), 1.0),
        (
            RefusedError(
                response=Response(
                    Retry_After="Sat, 21 Nov 2026 07:28:30 GMT",
                    Date="Sat, 21 Nov 2026 07:28:00 GMT",
                )
            ),
            30.0,
        ),
        (RefusedError(response=Response(Retry_After="Sat, 21 Nov 1998 07:28:30 GMT")), 0.0),
        (RefusedError(response=Response(Retry_After="29.5")), 29.5),
    ],
)
def test_the_delay_is_read_from_the_attribute_or_the_response(exception: Exception, seconds: float) -> None:
    assert retry_after(exception) == seconds


@pytest.mark.parametrize(
    "exception",
    [
        RefusedError(),
        RefusedError(retry_after=None),
        RefusedError(retry_after="soon"),
        RefusedError(retry_after=-1),
        RefusedError(retry_after=math.inf),
        RefusedError(retry_after=math.nan),
        RefusedError(response=None),
        RefusedError(response=Response()),
        RefusedError(response=Response(Retry_After="soon")),
        RefusedError(response=Response(Retry_After="-5")),
        RefusedError(response=Response(Retry_After="Sat, 21 Nov 2026 07:28:30 GMT", Date="yesterday")),
    ],
)
def test_without_a_valid_delay_the_result_is_none(exception: Exception) -> None:
    assert retry_after(exception) is None


DATE = "Sun, 06 Nov 1994 08:49:07 GMT"


@pytest.mark.parametrize(
    ("date", "seconds"),
    [
        ("Sun, 06 Nov 1994 08:49:37 GMT", 30.0),
        ("Sunday, 06-Nov-94 08:49:37 GMT", 30.0),
        ("Sun Nov  6 08:49:37 1994", 30.0),
        ("Wed Nov 16 08:49:07 1994", 864_000.0),
        ("Sun, 06 Nov 1994 09:49:37 +0100", 30.0),
    ],
    ids=["RFC 5322", "RFC 850", "asctime", "asctime, two digits", "an offset"],
)
def test_all_date_formats_of_http_are_read(date: str, seconds: float) -> None:
    assert retry_after(RefusedError(response=Response(Retry_After=date, Date=DATE))) == seconds
    assert retry_after(RefusedError(response=Response(Retry_After="Sun Nov  6 08:49:37 1994", Date=date))) is not None


@pytest.mark.parametrize("year", [1969, 1999, 2026, 2068])
def test_a_two_digit_year_is_from_1969_to_2068(year: int) -> None:
    """`email.utils` does the same. In RFC 9110, section 5.6.7, the range depends on the present year."""
    date = f"Monday, 01-Jan-{year % 100:02d} 00:00:00 GMT"
    long_ago = format_datetime(datetime(1800, 1, 1, tzinfo=UTC), usegmt=True)
    seconds = retry_after(RefusedError(response=Response(Retry_After=date, Date=long_ago)))
    assert seconds == (datetime(year, 1, 1, tzinfo=UTC) - datetime(1800, 1, 1, tzinfo=UTC)) / timedelta(seconds=1)


@pytest.mark.parametrize(
    "exception",
    [
        RefusedError(headers={"Retry-After": "7"}),
        RefusedError(response={"ResponseMetadata": {"HTTPHeaders": {"retry-after": "7"}}}),
        RefusedError(retry_after="soon", response=Response(Retry_After="7")),
        RefusedError(retry_after=Decimal(7)),
        ExceptionGroup(
            "", [RefusedError(retry_after=7), ExceptionGroup("", [RefusedError(retry_after=3), ValueError()])]
        ),
    ],
    ids=["aiohttp", "botocore", "the header if the attribute is bad", "a Decimal", "the longest delay of a group"],
)
def test_the_exceptions_of_other_libraries_are_read(exception: Exception) -> None:
    assert retry_after(exception) == 7.0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after-ms": "250"}, 0.25),
        ({"Retry-After-Ms": " 1500.5 ", "Retry-After": "2"}, 1.5005),
        ({"retry-after-ms": "soon", "Retry-After": "2"}, 2.0),
        ({"retry-after-ms": "9" * 400, "Retry-After": "2"}, 2.0),
        ({"retry-after-ms": "-1"}, None),
        ({"retry-after-ms": "1e3"}, None),
    ],
)
def test_milliseconds_are_read_before_seconds(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(RefusedError(headers=headers)) == pytest.approx(seconds)


def test_a_header_of_urllib_is_read() -> None:
    headers = Message()
    headers["Retry-After"] = "7"
    with closing(urllib.error.HTTPError("http://service/", 503, "busy", headers, None)) as exception:
        assert retry_after(exception) == 7.0


class PropertyError(Exception):
    @property
    def response(self) -> Any:
        raise RuntimeError("no response was received")

    retry_after = headers = response


@pytest.mark.parametrize(
    "value",
    [
        10**400,
        10**5000,
        Decimal("NaN"),
        Decimal("sNaN"),
        "9" * 400,
        "nan",
        "\u0667",
        "²",
        "1_0",
        "",
        b"7",
        True,
        ["7"],
        {},
        object(),
        complex(7),
    ],
    ids=lambda value: (
        f"{type(value).__name__} {str(value)[:9]}" if not isinstance(value, int) else type(value).__name__
    ),
)
def test_an_attribute_that_is_not_a_number_of_seconds_is_ignored(value: Any) -> None:
    assert retry_after(RefusedError(retry_after=value)) is None


@pytest.mark.parametrize(
    "value",
    [
        "9" * 400,
        "9" * 5000,
        "\u0667",
        "²",
        "1_0",
        "1.",
        ".5",
        "1.5e3",
        "1e3",
        b"7",
        ["7"],
        object(),
        "Wed, 21 Oct 99999999999999999999 07:28:00 GMT",
        "Wed, 21 Oct 2015 07:28:00 +99999999999999999999",
        f"Wed, 21 Oct 2015 07:28:00 -{'9' * 400}",
        "Wed, 32 Oct 2015 07:28:00 GMT",
        "Wed, \u0662\u0661 Oct 2015 07:28:00 GMT",
        "Tuesday, 29-Feb-00x 07:28:00 GMT",
    ],
    ids=lambda value: str(value)[:50] if isinstance(value, str) else type(value).__name__,
)
def test_a_header_that_violates_rfc_9110_is_ignored(value: Any) -> None:
    response = Response(Date=DATE)
    response.headers["Retry-After"] = value
    assert retry_after(RefusedError(response=response)) is None


@pytest.mark.parametrize(
    "headers", [7, "Retry-After: 7", [("Retry-After", "7")], {7: 7}, type("Odd", (), {"items": 7})()]
)
def test_headers_that_are_not_a_mapping_are_ignored(headers: Any) -> None:
    response = Response()
    response.headers = headers
    assert retry_after(RefusedError(response=response)) is None


class OpaqueError(Exception):
    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)


@pytest.mark.parametrize("kind", [PropertyError, OpaqueError])
def test_properties_that_raise_are_ignored(kind: type[Exception]) -> None:
    assert retry_after(kind()) is None


@pytest.mark.parametrize(
    "error", [RefusedError(retry_after=10**400), PropertyError("gone")], ids=["a number", "a property"]
)
async def test_an_invalid_retry_after_does_not_hide_the_services_error(error: Exception, autojump_clock: Any) -> None:
    calls = 0

    async def refuse(value: int) -> None:
        nonlocal calls
        calls += 1
        raise error

    with pytest.raises(type(error)) as caught:
        async with ordered_wait([1], refuse, timeout=5.0, retry=FixedDelay(1, 0.0)) as results:
            await results.receive()
    assert (caught.value, calls) == (error, 2)
