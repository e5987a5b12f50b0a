"""Numbers for people."""

from __future__ import annotations

from math import inf

import pytest

from trio_asyncio_io._values.describe import amount, duration, in_words, plural


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 s"),
        (2.5e-10, "0.25 ns"),
        (3e-05, "30 µs"),
        (0.0557, "55.7 ms"),
        (0.1294, "129 ms"),
        (0.9994, "999 ms"),
        (0.9996, "1 s"),
        (1.4, "1.4 s"),
        (9.996, "10 s"),
        (999.7, "1,000 s"),
        (12_345.6, "12,346 s"),
        (inf, "∞"),
    ],
)
def test_a_duration_has_three_digits_and_a_unit(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (7, "7"),
        (0.0000312, "0.0000312"),
        (0.25, "0.25"),
        (9.996, "10"),
        (19.23, "19.2"),
        (99.99999999999999, "100"),  # its logarithm is 2, rounded
        (1234.5, "1,234"),
    ],
)
def test_an_amount_has_at_most_three_digits_and_no_exponent(number: float, text: str) -> None:
    assert amount(number) == text


def test_a_count_has_its_noun_in_the_plural_unless_it_is_one() -> None:
    assert (plural(1, "call"), plural(1200, "call")) == ("1 call", "1,200 calls")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 seconds"),
        (0.2, "0.2 seconds"),
        (1.0, "1 second"),
        (60.0, "1 minute"),
        (300.0, "5 minutes"),
        (5_400.0, "1.5 hours"),
        (16 * 86_400.0, "16 days"),
        (inf, "without an end"),
    ],
)
def test_seconds_in_words_have_the_largest_unit(seconds: float, text: str) -> None:
    assert in_words(seconds) == text
