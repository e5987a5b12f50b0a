"""Retry-After: what an exception says, in every form in which services say it."""

from __future__ import annotations

import math
from typing import Any

import pytest

from trio_asyncio_io import retry_after


class Response:
    def __init__(self, **headers: str) -> None:
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


class Refused(Exception):  # noqa: N818 - reads as what it is
    def __init__(self, **attributes: Any) -> None:
        super().__init__("refused")
        vars(self).update(attributes)


@pytest.mark.parametrize(
    ("exception", "seconds"),
    [
        (Refused(retry_after=1.5), 1.5),
        (Refused(retry_after=2), 2.0),
        (Refused(retry_after="3"), 3.0),
        (Refused(response=Response(Retry_After="7")), 7.0),
        (Refused(response=Response(retry_after=" 7 ")), 7.0),
        (Refused(retry_after=1.0, response=Response(Retry_After="7")), 1.0),
        (
            Refused(
                response=Response(
                    Retry_After="Sat, 21 Nov 2026 07:28:30 GMT",
                    Date="Sat, 21 Nov 2026 07:28:00 GMT",
                )
            ),
            30.0,
        ),
        (Refused(response=Response(Retry_After="Sat, 21 Nov 1998 07:28:30 GMT")), 0.0),
    ],
)
def test_it_is_read_from_the_attribute_or_the_response(exception: Exception, seconds: float) -> None:
    assert retry_after(exception) == seconds


@pytest.mark.parametrize(
    "exception",
    [
        Refused(),
        Refused(retry_after=None),
        Refused(retry_after="soon"),
        Refused(retry_after=-1),
        Refused(retry_after=math.inf),
        Refused(retry_after=math.nan),
        Refused(response=None),
        Refused(response=Response()),
        Refused(response=Response(Retry_After="soon")),
        Refused(response=Response(Retry_After="-5")),
        Refused(response=Response(Retry_After="Sat, 21 Nov 2026 07:28:30 GMT", Date="yesterday")),
    ],
)
def test_what_says_nothing_that_can_be_read_says_nothing(exception: Exception) -> None:
    assert retry_after(exception) is None
