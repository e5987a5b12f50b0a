"""When the gates of a key may be forgotten: a new one would decide the same, or what was learnt is old."""

from __future__ import annotations

import pytest

from trio_asyncio_io.gates import Auto, CircuitBreaker, Gate, Outcome, RateLimit

OVERLOAD = Outcome("overload", error=ConnectionError())


@pytest.mark.parametrize("gate", [RateLimit(1.0), Auto(), CircuitBreaker()], ids=lambda gate: type(gate).__name__)
def test_a_new_gate_may_be_forgotten(gate: Gate) -> None:
    assert gate.may_forget(1_000.0)


def test_a_rate_limit_may_be_forgotten_when_its_bucket_is_full() -> None:
    gate = RateLimit(0.1, burst=3)
    gate.started(1_000.0, 1.0)
    gate.started(1_000.0, 1.0)
    assert (gate.may_forget(1_019.9), gate.may_forget(1_020.0)) == (False, True)


def test_what_a_capacity_has_found_may_be_forgotten_ten_minutes_after_its_last_start() -> None:
    gate = Auto()
    gate.started(1_000.0, 1.0)
    gate.ended(1_001.0, 1.0, Outcome("ok"), 1.0)
    assert (gate.may_forget(1_599.9), gate.may_forget(1_600.0)) == (False, True)


def test_a_closed_circuit_may_be_forgotten_after_its_window() -> None:
    gate = CircuitBreaker(window=10.0)
    gate.ended(1_000.0, 0.1, OVERLOAD, 1.0)
    assert (gate.may_forget(1_009.9), gate.may_forget(1_010.0)) == (False, True)


def test_an_open_circuit_may_be_forgotten_after_ten_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trio_asyncio_io.gates._circuit_breaker.random", lambda: 0.5)
    gate = CircuitBreaker(calls=1, open_for=10.0)
    gate.ended(1_000.0, 0.1, OVERLOAD, 1.0)
    assert (gate.may_forget(1_609.9), gate.may_forget(1_610.0)) == (False, True)
