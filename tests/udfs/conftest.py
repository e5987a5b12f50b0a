"""What the UDFs' tests share: rows, live functions in place of packed ones, and gates between two threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
import trio

from tests.support import PATIENCE
from udfs._loop.runtime import Runtime
from udfs._row import Row
from udfs._settings import Settings
from udfs._task.reading import rows_of


@dataclass(frozen=True)
class Live:
    """A packed function that unpacks to the very object that was packed, so that a test can look into it."""

    function: Any
    name: str
    digest: str = field(default_factory=lambda: uuid4().hex)

    def unpack(self) -> Any:
        return self.function


class Gate:
    """Shut until it is opened. Functions wait in the loop, tests in their own thread; either may open it."""

    def __init__(self) -> None:
        self._opened = trio.Event()
        self._reached = threading.Event()

    async def wait(self) -> None:
        self._reached.set()
        await self._opened.wait()

    def open(self) -> None:
        Runtime.current().soon(self._opened.set)

    def wait_until_reached(self) -> None:
        assert self._reached.wait(PATIENCE), "nobody came to the gate"


def _live(function: Any) -> Live:
    return Live(function, getattr(function, "__name__", type(function).__name__))


@pytest.fixture
def settings() -> Callable[..., Settings]:
    """Settings around functions of this very process."""

    def make(function: Any, *, on_timeout: Any = None, timeout: float = PATIENCE, **more: Any) -> Settings:
        packed: Any = function if isinstance(function, Live) else _live(function)
        handler: Any = None if on_timeout is None else _live(on_timeout)
        return Settings(packed, timeout, on_timeout=handler, **more)

    return make


@pytest.fixture
def live() -> Callable[[Any], Live]:
    """Makes a replacement for a packed function. Settings around the same one share its open instance."""
    return _live


@pytest.fixture
def gate() -> Callable[[], Gate]:
    """The class, so that a test makes as many as it needs."""
    return Gate


@pytest.fixture
def rows() -> Callable[..., list[Row]]:
    """The rows of a batch with one column of these values."""

    def make(values: Any, batch: int = 0, times: Any = None) -> list[Row]:
        made = rows_of([pa.array(values)], batch)
        for row, time in zip(made, times or [None] * len(made), strict=True):
            row.event_time = time
        return made

    return make


@pytest.fixture
def tasks_of_the_loop() -> Callable[[], list[str]]:
    """Names of the tasks in the runtime's loop that belong to a Spark task, as they are at this moment."""

    def look() -> list[str]:
        names: list[str] = []
        looked = threading.Event()

        def walk() -> None:
            names.extend(_names_below(trio.lowlevel.current_root_task()))
            looked.set()

        Runtime.current().soon(walk)
        assert looked.wait(PATIENCE), "the loop does not answer"
        return [name for name in names if "udfs._loop.bridge" in name or name.startswith("trio_asyncio_io")]

    return look


def _names_below(task: Any) -> Iterator[str]:
    for nursery in task.child_nurseries:
        for child in nursery.child_tasks:
            yield child.name
            yield from _names_below(child)
