"""Notes on exceptions that are raised once, raised repeatedly, or cannot have notes."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from trio_asyncio_io import FixedDelay, RetryBudget, ordered_wait
from trio_asyncio_io._values.exceptions import MAX_NOTES, add_note
from trio_asyncio_io.testing import Scripted, Step

BUDGET_NOTE = "it was not retried: the operator's retry budget is used up"


async def run(operator: Any) -> None:
    async with operator as results:
        async for _ in results:
            pass


async def test_an_exception_raised_for_every_element_has_one_note(async_wait: Any, autojump_clock: MockClock) -> None:
    down = ConnectionError("down")
    retry = FixedDelay(1, 0.0, budget=RetryBudget(ratio=0.0, reserve=1))
    await run(async_wait(range(500), Scripted(default=Step(error=down)), timeout=5.0, retry=retry, on_error="skip"))
    assert down.__notes__ == [BUDGET_NOTE]


async def test_an_exception_raised_in_several_runs_names_the_elements_of_the_last_runs(
    async_wait: Any, raised_by: Any
) -> None:
    down = ConnectionError("down")
    for value in range(50):
        assert await raised_by(async_wait([value], Scripted(default=Step(error=down)), timeout=5.0)) is down
    assert down.__notes__ == [f"element 0, {value}, attempt 1" for value in range(50 - MAX_NOTES, 50)]


async def test_a_note_of_an_operator_inside_the_function_remains(async_wait: Any, raised_by: Any) -> None:
    down = ConnectionError("down")

    async def enrich(value: str) -> None:
        await run(ordered_wait([value.upper()], Scripted(default=Step(error=down)), timeout=5.0))

    assert await raised_by(async_wait("a", enrich, timeout=5.0)) is down
    assert down.__notes__ == ["element 0, 'A', attempt 1", "element 0, 'a', attempt 1"]


async def test_the_number_of_notes_is_limited_when_many_elements_raise_one_exception(
    async_wait: Any, raised_by: Any
) -> None:
    async def fail(value: int) -> None:
        await signal.wait()
        raise down

    async def body(results: Any) -> None:
        await wait_all_tasks_blocked()
        signal.set()
        await trio.sleep_forever()

    signal = trio.Event()
    down = ConnectionError("down")
    assert await raised_by(async_wait(range(100), fail, timeout=5.0), body) is down
    assert len(down.__notes__) == len(set(down.__notes__)) == MAX_NOTES


def test_a_copy_of_an_exception_does_not_share_the_notes() -> None:
    error = OSError("busy")
    add_note(error, "first")
    copied = copy(error)
    add_note(error, "second")
    assert (error.__notes__, copied.__notes__) == (["first", "second"], ["first"])


@dataclass(frozen=True)
class FrozenError(Exception):
    code: int


class SlottedError(Exception):
    __slots__ = ("code",)


class SealedError(Exception):
    def add_note(self, note: str) -> None:
        raise RuntimeError("no notes")


@pytest.mark.parametrize(
    "error", [FrozenError(503), SlottedError(503), SealedError(503)], ids=lambda error: type(error).__name__
)
async def test_an_immutable_exception_is_raised_unchanged_with_its_note(
    error: Exception, async_wait: Any, raised_by: Any
) -> None:
    assert await raised_by(async_wait("a", Scripted(default=Step(error=error)), timeout=5.0)) is error
    assert error.__notes__ == ["element 0, 'a', attempt 1"]


@pytest.mark.parametrize("notes", ["mine", ("mine",), 7])
async def test_notes_that_are_not_a_list_are_unchanged(notes: Any, async_wait: Any, raised_by: Any) -> None:
    error = OSError("busy")
    error.__notes__ = notes
    assert await raised_by(async_wait("a", Scripted(default=Step(error=error)), timeout=5.0)) is error
    assert error.__notes__ == notes


class NotesError(Exception):
    @property
    def __notes__(self) -> Any:
        raise RuntimeError("no notes")


class UnprintableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


@pytest.mark.parametrize(
    "error", [NotesError("busy"), UnprintableError("busy")], ids=lambda error: type(error).__name__
)
async def test_an_exception_whose_properties_raise_is_raised_unchanged(
    error: Exception, async_wait: Any, raised_by: Any
) -> None:
    assert await raised_by(async_wait("a", Scripted(default=Step(error=error)), timeout=5.0)) is error
