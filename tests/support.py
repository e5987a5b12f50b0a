"""Shared by the tests: how long they wait, and how they wait for what another thread or process does."""

from __future__ import annotations

import time
from collections.abc import Callable

__all__ = ["PATIENCE", "wait_until"]

# Seconds that only a hang takes, however slow or busy the machine is. No test passes or fails by its speed.
PATIENCE = 600.0


def wait_until(predicate: Callable[[], object], what: Callable[[], str] | str = "it never happened") -> None:
    """Return as soon as the predicate is true; fail with `what` if it never is."""
    deadline = time.monotonic() + PATIENCE
    while not predicate():
        assert time.monotonic() < deadline, what if isinstance(what, str) else what()
        time.sleep(0.02)
