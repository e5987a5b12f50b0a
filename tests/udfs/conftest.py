"""Shared by the tests of the UDFs: settings, rows, and gates between the loop and the test's thread."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
import trio
import trio.testing

from tests.support import PATIENCE
from trio_asyncio_io import Options
from udfs._sent.row import Row
from udfs._sent.settings import Settings
from udfs._spark_thread.bridge import enrich
from udfs._spark_thread.reading import rows_of
from udfs._trio_thread.runtime import Runtime


@dataclass(frozen=True)
class Live:
    """A packed function that unpacks to the same object, so that a test can inspect it."""

    function: Any
    name: str
    digest: str = field(default_factory=lambda: uuid4().hex)

    def unpack(self) -> Any:
        return self.function


class Gate:
    """Closed until it is opened. Functions wait for it in the loop, and tests in their own thread."""

    def __init__(self) -> None:
        self._opened = trio.Event()
        self._reached = threading.Event()

    async def wait(self) -> None:
        self._reached.set()
        await self._opened.wait()

    def open(self) -> None:
        Runtime.current().soon(self._opened.set)

    def wait_until_reached(self) -> None:
        assert self._reached.wait(PATIENCE), "no function has reached the gate"


def _live(function: Any) -> Live:
    return Live(function, getattr(function, "__name__", type(function).__name__))


@pytest.fixture
def settings() -> Callable[..., Settings]:
    """Creates settings for a function of this process, which is not pickled."""

    def make(function: Any, *, on_timeout: Any = None, timeout: float = PATIENCE, **more: Any) -> Settings:
        packed: Any = function if isinstance(function, Live) else _live(function)
        handler: Any = None if on_timeout is None else _live(on_timeout)
        buffer = more.pop("buffer", None)
        names = {"mode", "capacity", "retry", "observer", "gate", "group", "group_wait", "group_split"} & more.keys()
        options = {name: more.pop(name) for name in names}
        key = attrgetter("key") if options.get("mode") == "keyed" else None
        return Settings(
            packed, Options(timeout, buffer=buffer, key=key, **options), buffer=buffer, on_timeout=handler, **more
        )

    return make


@pytest.fixture
def live() -> Callable[[Any], Live]:
    """Packs a function without a pickle. Settings with the same result share one open instance."""
    return _live


@pytest.fixture
def gate() -> Callable[[], Gate]:
    """Creates gates."""
    return Gate


@pytest.fixture
def rows() -> Callable[..., list[Row]]:
    """Creates the rows of a batch with one column of these values."""

    def make(values: Any, batch: int = 0, times: Any = None) -> list[Row]:
        made = rows_of([pa.array(values)], batch)
        for row, time in zip(made, times or [None] * len(made), strict=True):
            row.event_time = time
        return made

    return make


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """The worker's socket and Spark's socket."""
    ours, sparks = socket.socketpair()
    with ours, sparks:
        yield ours, sparks


@pytest.fixture
def run_task(rows: Any) -> Callable[..., list[Any]]:
    """Runs one Spark task, with a batch for each list of values, and returns the results of its rows."""

    def run(settings: Settings, *batches: list[Any]) -> list[Any]:
        made = [rows(values, number) for number, values in enumerate(batches or [[1, 2, 3]])]
        return [row.result for chunk in enrich(iter(made), settings) for row in chunk]

    return run


@pytest.fixture
def settled() -> Callable[[], None]:
    """Waits until no task of the loop can go on, and none waits for a thread, such as that of a memo's recorder."""

    def wait() -> None:
        done = threading.Event()

        async def look() -> None:
            await trio.testing.wait_all_tasks_blocked()
            while trio.testing.active_thread_count():
                await trio.testing.wait_all_threads_completed()
                await trio.testing.wait_all_tasks_blocked()
            done.set()

        Runtime.current().soon(lambda: trio.lowlevel.spawn_system_task(look))
        assert done.wait(PATIENCE), "the loop never rests"

    return wait


OF_A_TASK = re.compile(r".*udfs\._spark_thread\.bridge|trio_asyncio_io (?!shared |single flight)")


@pytest.fixture
def tasks_of_the_loop() -> Callable[[], list[str]]:
    """Lists the Trio tasks in the loop that belong to a Spark task.

    Shared resources and their policies, whose tasks may be idle, stay open for a while after the last task.
    """

    def listed() -> list[str]:
        names: list[str] = []
        looked = threading.Event()

        def walk() -> None:
            names.extend(_names_below(trio.lowlevel.current_root_task()))
            looked.set()

        Runtime.current().soon(walk)
        assert looked.wait(PATIENCE), "the loop does not respond"
        return [name for name in names if OF_A_TASK.match(name)]

    return listed


def _names_below(task: Any) -> Iterator[str]:
    for nursery in task.child_nurseries:
        for child in nursery.child_tasks:
            yield child.name
            yield from _names_below(child)
