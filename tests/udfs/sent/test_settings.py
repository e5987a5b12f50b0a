"""Settings, which are checked on the driver."""

from __future__ import annotations

import math
import pickle
import threading
from typing import Any

import pytest

from trio_asyncio_io import ExponentialBackoff, FixedDelay, Observer, Options
from trio_asyncio_io.gates import Auto, RateLimit
from udfs._plan.arguments import make_settings
from udfs._sent.settings import Settings


async def look_up(value: int) -> int:
    return value


def made(**arguments: Any) -> Settings:
    timeout = arguments.pop("timeout", 5.0)
    return make_settings(look_up, timeout, arguments)


def test_the_defaults_are_those_of_the_operator() -> None:
    assert made().options == Options(5.0)


def test_another_capacity_has_its_own_default_buffer() -> None:
    options = made(capacity=1).with_capacity(50).options
    assert (options.capacity, options.buffer) == (50, 5_000)


def test_another_capacity_leaves_the_users_buffer_alone() -> None:
    options = made(capacity=1, buffer=70).with_capacity(50).options
    assert (options.capacity, options.buffer) == (50, 70)


def test_settings_can_be_pickled() -> None:
    settings = made(retry=FixedDelay(3, 0.5), on_timeout=look_up, on_error="column", capacity=7)
    assert pickle.loads(pickle.dumps(settings)) == settings


def test_a_capacity_that_is_to_be_found_is_sent_as_a_gate() -> None:
    gate = RateLimit(10.0)
    options = pickle.loads(pickle.dumps(made(capacity="auto", gate=gate))).options
    assert options.capacity == 800
    assert [repr(each) for each in options.gates] == [repr(Auto()), repr(gate)]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"open_timeout": 0}, ValueError, "open_timeout must be above 0 seconds, got 0"),
        ({"buffer_bytes": 0}, ValueError, "buffer_bytes must be at least 1, got 0"),
        ({"capacity": 0}, ValueError, "capacity must be at least 1, got 0"),
        ({"capacity": 10, "buffer": 9}, ValueError, "buffer must be at least the capacity, 10, got 9"),
        ({"timeout": math.nan}, ValueError, "timeout must be seconds, not negative and not NaN .*, got nan"),
        ({"on_error": "skip"}, ValueError, """on_error must be "raise", "null" or "column", got 'skip\'"""),
        ({"capacity": 1.5}, TypeError, r'capacity must be a whole number, "auto" or a gates.Auto, got 1\.5'),
        ({"capacity": "10"}, TypeError, "capacity must be .*, got '10'"),
        ({"buffer": 1e6}, TypeError, "buffer must be a whole number"),
        (
            {"timeout": None},
            TypeError,
            r"timeout must be seconds as a number such as 5.0 \(math.inf for none\), got",
        ),
        ({"show_values": "no"}, TypeError, "show_values must be True or False, got 'no'"),
        ({"skip_nulls": None}, TypeError, "skip_nulls must be True or False, got None"),
        ({"retry": 3}, TypeError, r"retry must be a RetryStrategy such as FixedDelay\(3, 1.0\), got 3"),
        ({"on_timeout": "null"}, TypeError, "on_timeout must be an async callable or an AsyncFunction, got 'null'"),
        ({"error": None}, TypeError, "error must be the name of a new column, got None"),
        ({"metadata": ""}, TypeError, "metadata must be the name of a new column, got ''"),
        ({"on_timeout": print}, TypeError, "on_timeout must be async, got print"),
        ({"open_timeout": "30"}, TypeError, "open_timeout must be a number of seconds, got '30'"),
        ({"observer": "me"}, TypeError, "observer must be an Observer or None, got 'me'"),
    ],
    ids=str,
)
def test_a_bad_value_is_an_error_that_names_the_parameter(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        made(**arguments)


class Locked(Observer):
    def __init__(self) -> None:
        self.lock = LOCK


LOCK = threading.Lock()


@pytest.mark.parametrize(
    "argument",
    [
        {"retry": ExponentialBackoff(3, initial=0.1, maximum=1.0, retry_on=lambda error, lock=LOCK: lock.locked())},
        {"gate": RateLimit(1.0, weight=lambda value, lock=LOCK: lock or 1.0)},
        {"observer": Locked()},
    ],
    ids=lambda argument: next(iter(argument)),
)
def test_an_argument_that_cannot_be_pickled_is_refused_with_the_pattern(argument: dict[str, Any]) -> None:
    with pytest.raises(
        TypeError,
        match=rf"^{next(iter(argument))} captures something .* that cannot be sent to the workers[\s\S]*async def open",
    ):
        made(**argument)


def test_settings_with_a_gate_can_be_pickled() -> None:
    settings = pickle.loads(pickle.dumps(made(gate=[RateLimit(5.0)])))
    assert [gate.rate for gate in settings.options.gates] == [5.0]
