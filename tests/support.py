"""Helpers for all tests. Imports only the standard library, pytest and Trio."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

import trio

__all__ = ["PATIENCE", "outputs", "stable_id", "timed_outputs", "wait_until"]

# Seconds after which a test fails because something hangs. Longer than any machine needs, however busy it is.
PATIENCE = 600.0


def wait_until(predicate: Callable[[], object], what: Callable[[], str] | str = "it never happened") -> None:
    """Poll until the predicate is true; fail with the message `what` after `PATIENCE` seconds."""
    deadline = time.monotonic() + PATIENCE
    while not predicate():
        assert time.monotonic() < deadline, what if isinstance(what, str) else what()
        time.sleep(0.02)


async def outputs(operator: Any) -> list[Any]:
    """Enter an operator and receive all its outputs."""
    async with operator as results:
        return [result async for result in results]


async def timed_outputs(operator: Any) -> list[tuple[Any, float]]:
    """Enter an operator and receive all its outputs, each with its instant on Trio's clock."""
    async with operator as results:
        return [(result, trio.current_time()) async for result in results]


def stable_id(value: object) -> str:
    """A parameter's test ID: its `str` without memory addresses, so that the test has the same name in every run."""
    return re.sub(r" at 0x[0-9a-f]+", "", str(value))
