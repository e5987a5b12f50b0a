"""Each option in use makes its calls and gives its results; a record in the buffer takes memory."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from benchmarks._contenders import Contender
from benchmarks._options import IN_USE, PLAIN, TRACE, Use, bytes_per_record
from benchmarks._overhead import CAPACITY, TIMEOUT, counted

ELEMENTS = 300
BY_NAME = {use.name: use for use in IN_USE}
# Calls of what does not make one for each element: a group has ten, and one value in a hundred fails once
CALLS = {
    "failed once, a retry": 600,
    "failed once, a retry and three gates": 600,
    "groups of 10": 30,
    "together": 303,
    "together, with a hedge and a trace": 303,
}


def calls_and_peak(use: Use) -> tuple[int, int]:
    contender = Contender(use.name, use.loop)
    gauge = counted(contender, ELEMENTS)
    return gauge.calls, gauge.peak


@pytest.mark.parametrize("name", BY_NAME)
def test_each_option_makes_its_calls_within_the_capacity(name: str) -> None:
    calls, peak = calls_and_peak(BY_NAME[name])
    assert calls == CALLS.get(name, ELEMENTS)
    assert peak <= CAPACITY


def test_the_gate_that_holds_calls_back_halves_the_calls_at_once() -> None:
    _, peak = calls_and_peak(BY_NAME["held: half of the slots"])
    assert 1 < peak <= CAPACITY // 2


@pytest.mark.parametrize("name", BY_NAME)
def test_each_option_gives_a_result_or_a_dead_letter_for_each_element(name: str) -> None:
    received: list[None] = []
    contender = Contender(name, BY_NAME[name].loop)
    add: Callable[[], None] = lambda: received.append(None)  # noqa: E731
    contender.backend.run(contender.loop, contender.backend.checkpoint, ELEMENTS, CAPACITY, TIMEOUT, add)
    assert len(received) == ELEMENTS * (2 if name == "flatten, two outputs" else 1)


@pytest.mark.slow
@pytest.mark.parametrize("only_first", [False, True], ids=["waits for a slot", "waits for its place"])
def test_a_record_takes_more_memory_in_a_trace(only_first: bool) -> None:
    plain, traced = (bytes_per_record(use, 3_000, only_first=only_first) for use in (PLAIN, TRACE))
    assert 8 < plain < traced  # the reference in the buffer is part of it
