"""The row observer: the user's observer receives the values of the input columns, never a row."""

from __future__ import annotations

import inspect
from threading import Lock
from typing import Any

import pytest

from trio_asyncio_io import Observer, Options, Statistics, Verdict, Watermark
from trio_asyncio_io._account.statistics import Counters
from udfs._plan.arguments import make_settings
from udfs._sent.row import Row
from udfs._spark_thread.bridge import enrich
from udfs._trio_thread.calls import RowObserver

SEEN: list[tuple[Any, ...]] = []


class Diary(Observer):
    def accepted(self, sequence: int, element: Any) -> None:
        SEEN.append(("accepted", sequence, element))

    def attempt_failed(self, sequence: int, element: Any, attempt: int, error: Exception) -> None:
        SEEN.append(("attempt_failed", sequence, element, attempt, str(error)))

    def completed(self, sequence: int, element: Any, attempts: int, seconds: float) -> None:
        SEEN.append(("completed", sequence, element, attempts))


@pytest.mark.parametrize("more", [{}, {"mode": "unordered", "delay": 5}], ids=["bare rows", "rows with event time"])
def test_hooks_receive_the_values_of_the_input_columns(settings: Any, rows: Any, more: dict[str, Any]) -> None:
    async def call(value: int) -> int:
        if value == 7:
            raise ValueError("seven")
        return value

    SEEN.clear()
    made = settings(call, observer=Diary(), on_error="null", **more)
    assert len([row for chunk in enrich(iter([rows([6, 7])]), made) for row in chunk]) == 2
    assert sorted(SEEN) == [
        ("accepted", 0, (6,)),
        ("accepted", 1, (7,)),
        ("attempt_failed", 1, (7,), 1, "seven"),
        ("completed", 0, (6,), 1),
    ]


HOOKS = [name for name, member in vars(Observer).items() if inspect.isfunction(member)]
WATERMARK_HOOKS = [name for name in HOOKS if name.startswith("watermark")]


OTHER_HOOKS = {
    "grouped": ((4, 5),),
    "run_counted": (Counters(),),
    "run_started": (Options(5.0),),
    "run_ended": (Statistics(), Verdict("unknown", "", ())),
}


@pytest.mark.parametrize("hook", sorted({*HOOKS} - {*WATERMARK_HOOKS} - {*OTHER_HOOKS}))
def test_every_hook_is_forwarded_with_all_its_arguments(hook: str) -> None:
    seen: list[tuple[Any, ...]] = []
    observer = type("Seeing", (Observer,), {hook: lambda _, *arguments: seen.append(arguments)})()
    further = len(inspect.signature(getattr(Observer, hook)).parameters) - 3  # without self, sequence and element
    getattr(RowObserver(observer), hook)(4, Row(("EWR", 5), 0, 0), *range(further))
    assert seen == [(4, ("EWR", 5), *range(further))]


@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_that_the_observer_leaves_empty_is_not_forwarded(hook: str) -> None:
    assert (hook in vars(RowObserver(Diary()))) == (hook in vars(Diary))


@pytest.mark.parametrize("hook", WATERMARK_HOOKS)
def test_every_hook_of_a_watermark_is_forwarded(hook: str) -> None:
    seen: list[tuple[Any, ...]] = []
    observer = type("Seeing", (Observer,), {hook: lambda _, *arguments: seen.append(arguments)})()
    getattr(RowObserver(observer), hook)(4, Watermark(5))
    assert seen == [(4, Watermark(5))]


@pytest.mark.parametrize("hook", OTHER_HOOKS)
def test_every_hook_without_an_element_is_forwarded(hook: str) -> None:
    seen: list[tuple[Any, ...]] = []
    observer = type("Seeing", (Observer,), {hook: lambda _, *arguments: seen.append(arguments)})()
    getattr(RowObserver(observer), hook)(*OTHER_HOOKS[hook])
    assert seen == [OTHER_HOOKS[hook]]


def test_an_argument_that_is_not_an_observer_is_refused_on_the_driver() -> None:
    async def look_up(value: int) -> int:
        return value

    with pytest.raises(TypeError, match="observer must be an Observer or None, got 'me'"):
        make_settings(look_up, 5.0, {"observer": "me"})


def test_an_observer_that_cannot_be_pickled_is_refused_on_the_driver() -> None:
    class Locked(Observer):
        def __init__(self) -> None:
            self.lock = Lock()

    async def look_up(value: int) -> int:
        return value

    with pytest.raises(TypeError, match=r"observer captures something \(lock: lock\) that cannot be sent"):
        make_settings(look_up, 5.0, {"observer": Locked()})
