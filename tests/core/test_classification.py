"""The default classifier of gates."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import trio

from trio_asyncio_io import AttemptTimeoutError
from trio_asyncio_io._core.gate import Outcome, as_outcome
from trio_asyncio_io._core.reading import outcome_of


class ServiceError(Exception):
    def __init__(self, **attributes: Any) -> None:
        super().__init__()
        self.__dict__.update(attributes)


def response(status: int, **headers: str) -> ServiceError:
    return ServiceError(response=SimpleNamespace(status_code=status, headers=headers))


class HostileError(Exception):
    @property
    def retry_after(self) -> float:
        raise ZeroDivisionError

    status = retry_after


@pytest.mark.parametrize(
    ("error", "kind", "seconds"),
    [
        pytest.param(ServiceError(retry_after=2), "throttled", 2.0, id="retry_after"),
        pytest.param(ServiceError(retry_after=0), "throttled", 0.0, id="retry_after 0"),
        pytest.param(ServiceError(retry_after=3, status=500), "throttled", 3.0, id="500 with retry_after"),
        pytest.param(ServiceError(retry_after=None, status=500), "overload", None, id="500"),
        pytest.param(ServiceError(status=429), "throttled", None, id="429"),
        pytest.param(ServiceError(status_code=429), "throttled", None, id="429 as status_code"),
        pytest.param(response(429), "throttled", None, id="429 of a response"),
        pytest.param(response(429, **{"Retry-After": "7"}), "throttled", 7.0, id="429 with the header"),
        pytest.param(response(503, **{"Retry-After": "7"}), "throttled", 7.0, id="503 with the header"),
        pytest.param(response(503), "overload", None, id="503"),
        pytest.param(response(502, **{"Retry-After": "7"}), "overload", None, id="502 with the header"),
        pytest.param(response(408), "overload", None, id="408"),
        pytest.param(response(404), "error", None, id="404"),
        pytest.param(TimeoutError(), "overload", None, id="timeout"),
        pytest.param(trio.TooSlowError(), "overload", None, id="too slow"),
        pytest.param(AttemptTimeoutError("slow", 1.0), "overload", None, id="attempt timeout"),
        pytest.param(ConnectionResetError(), "overload", None, id="connection"),
        pytest.param(ValueError(), "error", None, id="bug"),
        pytest.param(HostileError(), "error", None, id="attributes that raise"),
        pytest.param(ExceptionGroup("", [ValueError(), TimeoutError()]), "overload", None, id="group"),
        pytest.param(
            ExceptionGroup("", [TimeoutError(), ServiceError(retry_after=1)]), "throttled", 1.0, id="group with 429"
        ),
    ],
)
def test_the_kind_of_an_exception(error: Exception, kind: str, seconds: float | None) -> None:
    outcome = outcome_of(error)
    assert (outcome.kind, outcome.retry_after) == (kind, seconds)
    assert outcome.error is error


def test_a_predicate_returns_an_outcome_or_its_kind() -> None:
    error = ValueError()
    assert as_outcome("overload", error) == Outcome("overload", error=error)
    assert as_outcome(Outcome("throttled", 3.0), error) == Outcome("throttled", 3.0, error)
    with pytest.raises(TypeError, match=r"^classify must return an Outcome or one of ok, .*, got True$"):
        as_outcome(True, error)


def test_an_outcome_has_a_kind_and_seconds() -> None:
    with pytest.raises(ValueError, match=r"^kind must be one of ok, throttled, .*, got 'busy'$"):
        Outcome("busy")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^retry_after must be seconds, not negative and not NaN, got -1$"):
        Outcome("throttled", -1)
