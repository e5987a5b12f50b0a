"""Blocked-loop detection in a worker: the user's functions and no others."""

from __future__ import annotations

import logging
import threading
from typing import Any

import pytest

from tests.support import PATIENCE
from udfs._trio_thread.runtime import logger


class Released(logging.Handler):
    """Releases a semaphore at each warning."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.came = threading.Semaphore(0)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())
        self.came.release()


def test_a_function_that_blocks_the_loop_of_a_worker_is_reported(
    settings: Any, run_task: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def slow_lookup(number: int) -> int:
        assert warned.came.acquire(timeout=PATIENCE), "there was no warning"
        return number

    warned = Released()
    monkeypatch.setattr(logger, "propagate", False)  # its thread may still log when the next test runs
    logger.addHandler(warned)
    try:
        assert run_task(settings(slow_lookup), [1]) == [1]
    finally:
        logger.removeHandler(warned)
    [text] = warned.texts
    assert text.startswith(f"slow_lookup ({__file__}, line ")
