"""The gates of a process."""

from __future__ import annotations

from typing import Any

from trio_asyncio_io.gates import RateLimit
from udfs._trio_thread.gates import MAX_GATES, gates_of


async def look_up(value: int) -> int:
    return value


def test_a_function_keeps_its_gate_from_one_task_to_the_next(settings: Any, live: Any) -> None:
    function = live(look_up)
    [first] = gates_of(settings(function, gate=RateLimit(5)))
    [second] = gates_of(settings(function, gate=RateLimit(5)))
    [other] = gates_of(settings(function, gate=RateLimit(6)))
    assert first is second
    assert first is not other


def test_a_process_keeps_the_gates_of_a_limited_number_of_functions(settings: Any, live: Any) -> None:
    """A query that builds its function for each micro-batch makes new gates each time."""
    functions = [live(look_up) for _ in range(MAX_GATES + 1)]
    gates = [gates_of(settings(function, gate=RateLimit(5)))[0] for function in functions]
    [last] = gates_of(settings(functions[-1], gate=RateLimit(5)))
    [first] = gates_of(settings(functions[0], gate=RateLimit(5)))
    assert last is gates[-1]
    assert first is not gates[0]
