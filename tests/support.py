"""Helpers for all tests. Imports only the standard library, pytest and Trio."""

from __future__ import annotations

import pickle
import re
import time
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio

# Seconds after which a test fails because something hangs. Longer than any machine needs, however busy it is.
PATIENCE = 600.0


def wait_until(predicate: Callable[[], object], message: Callable[[], str] | str = "the condition never held") -> None:
    """Poll until the predicate is true; fail with the message after `PATIENCE` seconds."""
    deadline = time.monotonic() + PATIENCE
    while not predicate():
        assert time.monotonic() < deadline, message if isinstance(message, str) else message()
        time.sleep(0.02)


async def outputs(operator: Any) -> list[Any]:
    """Enter an operator and receive all its outputs."""
    async with operator as results:
        return [result async for result in results]


async def timed_outputs(operator: Any) -> list[tuple[Any, float]]:
    """Enter an operator and receive all its outputs, each with its instant on Trio's clock."""
    async with operator as results:
        return [(result, trio.current_time()) async for result in results]


async def receive_and_snapshot(number: int, make: Callable[[Any], Any], source: Any) -> tuple[list[Any], Any]:
    """Receive some outputs of `make(source)`; return them and the operator's snapshot, pickled and unpickled."""
    async with make(source) as results:
        received = [await results.receive() for _ in range(number)]
        return received, pickle.loads(pickle.dumps(results.snapshot()))


@asynccontextmanager
async def bursts_of(count: Callable[[], int]) -> AsyncIterator[list[int]]:
    """How far a count has risen each time that another task ran, while the block runs."""
    bursts = [0]

    async def watch() -> None:
        seen = count()
        while True:
            bursts.append(count() - seen)
            seen = count()
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch)
        yield bursts
        nursery.cancel_scope.cancel()


def stable_id(value: object) -> str:
    """A parameter's test ID: its `str` without memory addresses, so that the test has the same name in every run."""
    return re.sub(r" at 0x[0-9a-f]+", "", str(value))


def thorough_except(short: Collection[Any], every: Collection[Any]) -> list[Any]:
    """The parameters `every`, for `pytest.mark.parametrize`. Those that are not in `short` are thorough."""
    return _marked_except(short, every, pytest.mark.thorough)


def variation_except(short: Collection[Any], every: Collection[Any]) -> list[Any]:
    """The parameters `every`, for `pytest.mark.parametrize`. Those that are not in `short` are variations."""
    return _marked_except(short, every, pytest.mark.variation)


def _marked_except(short: Collection[Any], every: Collection[Any], mark: pytest.MarkDecorator) -> list[Any]:
    assert set(short) <= set(every), "a short parameter is not among all of them"
    return [
        pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=() if value in short else mark)
        for value in every
    ]
