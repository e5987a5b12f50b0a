"""Blocked-loop detection in a program of one's own. The tests of the workers have the rest."""

from __future__ import annotations

import inspect
import logging
import math
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import trio

from tests.support import PATIENCE
from trio_asyncio_io import unordered_wait
from trio_asyncio_io.blocked_loop import BlockedLoop


class Reports(logging.Handler):
    """The warnings so far. A function that acquires `came` blocks the loop until there is one."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []
        self.came = threading.Semaphore(0)

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())
        self.came.release()


@pytest.fixture
def reports() -> Iterator[Reports]:
    handler = Reports()
    logging.getLogger("trio_asyncio_io").addHandler(handler)
    yield handler
    logging.getLogger("trio_asyncio_io").removeHandler(handler)


def test_a_function_of_an_operator_is_reported_once_with_its_line_and_the_cure(reports: Reports) -> None:
    async def look_up(number: int) -> int:
        if number == 0:
            assert reports.came.acquire(timeout=PATIENCE), "there was no warning"
        return number

    async def main() -> list[int]:
        async with unordered_wait(range(3), look_up, timeout=math.inf) as results:
            return [result async for result in results]

    assert sorted(trio.run(main, instruments=[BlockedLoop(0.05)])) == [0, 1, 2]
    [text] = reports.texts
    lines, first = inspect.getsourcelines(look_up)
    line = first + next(number for number, line in enumerate(lines) if "came.acquire" in line)
    assert text.startswith(
        f"{look_up.__qualname__.rpartition('<locals>.')[2]} ({__file__}, line {line}) has blocked the loop for more "
        "than 0.05 s"
    )
    assert "trio_asyncio_io.adapters.in_thread" in text


def test_code_that_runs_the_loop_does_not_block_it() -> None:
    """It is below all tasks on the stack, all the time."""
    watch = BlockedLoop()

    async def main() -> list[str]:
        return [frame.f_code.co_name for frame in watch.user_frames(sys._getframe())]

    assert trio.run(main, instruments=[watch]) == ["main"]


@pytest.mark.parametrize("seconds", [0, -1.0, math.inf, math.nan, "1"], ids=repr)
def test_an_invalid_limit_is_refused(seconds: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="seconds must be"):
        BlockedLoop(seconds)
