"""The simulated trouble, with a clock of the test."""

from __future__ import annotations

import pytest

from udfs.demo._trouble import Trouble


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def trouble(clock: Clock) -> Trouble:
    return Trouble(clock)


def statuses(trouble: Trouble, kind: str, keys: str) -> list[int]:
    return [trouble.response(kind, key).status for key in keys]


def test_flaky_fails_every_other_time(trouble: Trouble) -> None:
    assert statuses(trouble, "flaky", "aaaa") == [503, 200, 503, 200]


def test_keys_of_flaky_are_independent(trouble: Trouble) -> None:
    assert statuses(trouble, "flaky", "abba") == [503, 503, 200, 200]


def test_busy_is_a_200_only_after_retry_after(trouble: Trouble, clock: Clock) -> None:
    first = trouble.response("busy", "a")
    clock.now += 0.5
    second = trouble.response("busy", "a")
    clock.now += 0.5
    third = trouble.response("busy", "a")
    assert [first.status, second.status, third.status] == [429, 429, 200]
    assert [first.headers, second.headers, third.headers] == [[(b"retry-after", b"1")]] * 2 + [()]


def test_a_key_of_busy_starts_over_after_a_200(trouble: Trouble, clock: Clock) -> None:
    trouble.response("busy", "a")
    clock.now += 1.0
    assert statuses(trouble, "busy", "aa") == [200, 429]


def test_slow_waits_for_the_given_seconds(trouble: Trouble) -> None:
    answer = trouble.response("slow", "2.5")
    assert (answer.status, answer.seconds, answer.body) == (200, 2.5, {"seconds": 2.5})


@pytest.mark.parametrize("text", ["", "soon", "-1", "nan", "inf", "3601"])
def test_seconds_out_of_range_are_a_400_at_once(trouble: Trouble, text: str) -> None:
    answer = trouble.response("slow", text)
    assert (answer.status, answer.seconds) == (400, 0.0)
    assert repr(text) in answer.body["error"]
