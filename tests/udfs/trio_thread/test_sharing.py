"""Shared resources in a Python worker: one for all functions of the process, open between tasks."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio

from tests.support import PATIENCE
from udfs import shared
from udfs._sent.function import pack
from udfs._spark_thread import bridge


class Lines:
    """Counts openings and closings."""

    def __init__(self) -> None:
        self.opened = 0
        self.closed = 0
        self.is_closed = threading.Event()

    @asynccontextmanager
    async def line(self) -> AsyncIterator[Lines]:
        self.opened += 1
        yield self
        self.closed += 1
        self.is_closed.set()


def user_of(resource: Any, factor: int) -> Any:
    async def function(value: int) -> int:
        async with resource as lines:
            assert lines.opened > lines.closed
            return factor * value

    return function


def test_two_functions_and_a_handler_use_one_resource_which_stays_open_between_their_tasks(
    settings: Any, run_task: Any
) -> None:
    lines = Lines()
    line = shared("sharing 1", lines.line)

    async def never(value: int) -> int:
        async with line:
            await trio.sleep_forever()
        raise AssertionError

    assert run_task(settings(user_of(line, 10))) == [10, 20, 30]
    assert run_task(settings(user_of(line, 100))) == [100, 200, 300]
    assert run_task(settings(never, on_timeout=user_of(line, -1), timeout=0.2)) == [-1, -2, -3]
    assert (lines.opened, lines.closed) == (1, 0)


def test_it_is_closed_a_while_after_the_last_task(
    settings: Any, run_task: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bridge, "IDLE_SECONDS", 0.01)
    lines = Lines()
    assert run_task(settings(user_of(shared("sharing 2", lines.line), 2))) == [2, 4, 6]
    assert lines.is_closed.wait(PATIENCE)
    assert (lines.opened, lines.closed) == (1, 1)


def test_a_changed_definition_replaces_the_resource_that_no_task_uses(settings: Any, run_task: Any) -> None:
    """This happens when a cell of a notebook is edited and run again."""
    before, after = Lines(), Lines()
    run_task(settings(user_of(shared("sharing 3", before.line), 1)))
    run_task(settings(user_of(shared("sharing 3", after.line, open_timeout=20.0), 1)))
    assert (before.closed, after.opened, after.closed) == (1, 1, 0)


def _url_of(url: str) -> Any:
    async def connect() -> list[str]:
        return [url]

    return connect


def test_functions_that_were_pickled_separately_use_one_resource(settings: Any, run_task: Any) -> None:
    found: list[Any] = []
    line = shared("sharing 4", _url_of("one"))

    def function_of(name: str) -> Any:
        async def function(value: int) -> Any:
            async with line as urls:
                urls.append(name)
                return urls

        return pack(function).unpack()

    for name in ("a", "b"):
        found = run_task(settings(function_of(name)), [1])
    assert found == [["one", "a", "b"]]
