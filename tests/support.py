"""Shared by the tests: how they wait for other threads and processes, and what `just test` leaves out."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import Any

import pytest

__all__ = ["PATIENCE", "thorough_except", "wait_until"]

# Seconds that only a hang takes, however slow or busy the machine is. No test passes or fails by its speed.
PATIENCE = 600.0


def wait_until(predicate: Callable[[], object], message: Callable[[], str] | str = "the condition never held") -> None:
    """Return as soon as the predicate is true. Fail with the message if it never is."""
    deadline = time.monotonic() + PATIENCE
    while not predicate():
        assert time.monotonic() < deadline, message if isinstance(message, str) else message()
        time.sleep(0.02)


def thorough_except(short: Collection[Any], every: Collection[Any]) -> list[Any]:
    """The parameters `every`, for `pytest.mark.parametrize`. `just test` runs only those that are also in `short`."""
    assert set(short) <= set(every), "a short parameter is not among all of them"
    return [
        pytest.param(
            *(value if isinstance(value, tuple) else (value,)), marks=() if value in short else pytest.mark.thorough
        )
        for value in every
    ]
