"""The line of a query's metrics, from sums as Spark reports them."""

from __future__ import annotations

from typing import Any

import pytest

from udfs import summary

SUMS = {
    "rows": 4,
    "calls": 6,
    "retried": 2,
    "failed": 0,
    "timed_out": 0,
    "cached": 0,
    "seconds": 2.0,
    "slowest": 1.0,
}


@pytest.mark.parametrize(
    ("gates", "parts"),
    [
        ({}, []),
        ({"explain": '{"gate_waits": 0.0, "throttled": 0.0}'}, []),
        ({"explain": '{"gate_waits": 1041.25, "throttled": 1212.0}'}, ["gated 1,041.2 s", "1,212 throttled"]),
    ],
    ids=["no gates", "gates without waits", "gates"],
)
def test_the_line_has_what_gates_did(gates: dict[str, Any], parts: list[str]) -> None:
    line = summary(SUMS | gates)
    assert line.split(", ")[6:-2] == parts
