"""The row observer: the user's observer receives the values of the input columns, never a row."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from trio_asyncio_io import Observer, Options, Statistics, Verdict, Watermark
from trio_asyncio_io._account.statistics import Counters
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

WITHOUT_A_ROW = {
    **{name: (4, Watermark(5)) for name in HOOKS if name.startswith("watermark")},
    "grouped": ((4, 5),),
    "run_counted": (Counters(),),
    "run_started": (Options(5.0),),
    "run_ended": (Statistics(), Verdict("unknown", "", ())),
}


@pytest.mark.parametrize("hook", HOOKS)
def test_every_hook_is_forwarded_with_all_its_arguments(hook: str) -> None:
    seen: list[tuple[Any, ...]] = []
    observer = type("Seeing", (Observer,), {hook: lambda _, *arguments: seen.append(arguments)})()
    further = range(len(inspect.signature(getattr(Observer, hook)).parameters) - 3)  # after sequence and element
    given = WITHOUT_A_ROW.get(hook, (4, Row(("EWR", 5), 0, 0), *further))
    getattr(RowObserver(observer), hook)(*given)
    assert seen == [WITHOUT_A_ROW.get(hook, (4, ("EWR", 5), *further))]


@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_that_the_observer_leaves_empty_is_not_forwarded(hook: str) -> None:
    assert (hook in vars(RowObserver(Diary()))) == (hook in vars(Diary))
