"""User code that raises, in each place where the operator calls it: one stated effect, and nothing leaks."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, nan
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.plain_gates import AtMost
from trio_asyncio_io import AsyncWaitOperator, FixedDelay, Observer, RetryStrategy
from trio_asyncio_io.gates import CircuitBreaker, Gate, Outcome, PerKey, RateLimit, settle
from trio_asyncio_io.testing import Recorder, Scripted, Step


class BugError(Exception):
    """Raised by user code."""


def raises(*_: Any, **__: Any) -> Any:
    raise BugError("a bug")


async def wait_for_ever(operator: Any) -> None:
    await trio.sleep_forever()


class Plain(Gate):
    """Admits each call."""

    def delay(self, now: float, weight: float) -> float:
        return 0.0


class Late(Plain):
    """Raises for the second call and all later ones, in the method that is replaced."""

    def __init__(self) -> None:
        self.starts = 0

    def started(self, now: float, weight: float) -> None:
        self.starts += 1


def delay_raises(gate: Late, now: float, weight: float) -> float:
    return raises() if gate.starts else 0.0


def started_raises(gate: Late, now: float, weight: float) -> None:
    gate.starts += 1
    if gate.starts > 1:
        raises()


class SettledGate(Late):
    weight = staticmethod(lambda value: 1.0)
    correct = raises


BROKEN = {
    "delay": type("DelayGate", (Late,), {"delay": delay_raises}),
    "started": type("StartedGate", (Late,), {"started": started_raises}),
    "ended": type("EndedGate", (Late,), {"ended": raises}),
    "correct": SettledGate,
    "weight": type("WeightGate", (Plain,), {"weight": staticmethod(raises)}),
    "nan": type("NanGate", (Plain,), {"delay": lambda *_: float("nan")}),
    "text": type("TextGate", (Plain,), {"delay": lambda *_: "1"}),
    "inf": type("InfGate", (Plain,), {"delay": lambda *_: inf}),
    "key": None,
}


async def settled(value: Any) -> Any:
    await trio.sleep(1.0)
    settle(2.0)
    return value


GROUPS = pytest.mark.parametrize("group", [None, 2], ids=["single", "groups"])


@GROUPS
@pytest.mark.parametrize("retry", [None, FixedDelay(2, 0.5)], ids=["one attempt", "with retries"])
@pytest.mark.parametrize("place", list(BROKEN))
async def test_a_broken_gate_stops_the_operator_with_its_own_exception(
    place: str, retry: Any, group: int | None, *, raised_by: Any, nothing_left: Any, autojump_clock: MockClock
) -> None:
    kind = BROKEN[place]
    gate = PerKey(RateLimit(1.0), key=raises) if kind is None else kind()
    limit = AtMost(2)
    recorder: Recorder[Any, Any] = Recorder(settled)
    with nothing_left():
        operator = AsyncWaitOperator(
            recorder,
            source=range(9),
            timeout=9.0,
            capacity=3,
            gate=[limit, gate],
            on_error="skip",
            retry=retry,
            group=group,
        )
        with trio.fail_after(100.0):
            error = await raised_by(operator, wait_for_ever)
    expected = {"nan": ValueError, "text": TypeError, "inf": RuntimeError}.get(place, BugError)
    assert type(error) is expected, error
    if place in {"nan", "text", "inf"}:
        assert "Gate" in str(error)
    numbers = operator.statistics()
    assert (numbers.running, recorder.running, numbers.failed, numbers.skipped) == (0, 0, 0, 0)
    assert recorder.peak_running <= 2
    assert limit.running == 0
    assert len(operator.snapshot().elements) == 9 - numbers.emitted


def of_groups(function: Any, group: int | None) -> Any:
    """The function, or one of lists, whose results may be exceptions."""

    async def each(value: Any) -> Any:
        try:
            return await function(value)
        except Exception as error:  # noqa: BLE001 - it is the result
            return error

    async def many(values: list[Any]) -> list[Any]:
        return [await each(value) for value in values]

    return function if group is None else many


@GROUPS
@pytest.mark.parametrize("retry", [None, FixedDelay(2, 0.5, retry_on=OSError)], ids=["one attempt", "with retries"])
async def test_a_classifier_that_raises_fails_each_record_of_the_call(
    retry: Any, group: int | None, autojump_clock: MockClock
) -> None:
    async def fails(values: Any) -> Any:
        await trio.sleep(1.0)
        if values in (0, 1, [0, 1]):
            raise OSError
        return values

    limit = AtMost(2)
    gate = [CircuitBreaker(classify=raises), limit]
    options: Any = {"capacity": 3, "gate": gate, "retry": retry, "group": group}
    async with AsyncWaitOperator(fails, source=range(6), timeout=9.0, on_error="dead_letter", **options) as operator:
        assert [result async for result in operator.output] == [2, 3, 4, 5]
        errors = [each.error async for each in operator.output.dead_letters]
    assert [type(error) for error in errors] == [BugError] * 2
    assert all(isinstance(error.__context__, OSError) for error in errors)
    assert operator.statistics().running == limit.running == 0


async def test_errors_of_several_calls_in_one_pass_are_no_group(raised_by: Any, autojump_clock: MockClock) -> None:
    """The first is the operator's exception; the others are its notes."""
    operator = AsyncWaitOperator(
        Scripted(default=Step(1.0)), source=range(9), timeout=9.0, capacity=5, gate=BROKEN["ended"](), on_error="skip"
    )
    error = await raised_by(operator, wait_for_ever)
    assert isinstance(error, BugError)
    assert operator.statistics().running == 0


@GROUPS
@pytest.mark.parametrize("predicate", ["retry_on", "retry_on_result", "retry_after"])
async def test_a_retry_strategy_that_raises_fails_the_element(
    predicate: str, group: int | None, autojump_clock: MockClock
) -> None:
    step = Step(1.0) if predicate == "retry_on_result" else Step(1.0, error=OSError)
    async with AsyncWaitOperator(
        of_groups(Scripted({1: step}, default=Step(1.0)), group),
        source=[1],
        group=group,
        timeout=9.0,
        gate=RateLimit(100.0),
        retry=FixedDelay(2, 0.5, **{predicate: raises}),
        on_error="dead_letter",
    ) as operator:
        assert [result async for result in operator.output] == []
        assert [type(each.error) async for each in operator.output.dead_letters] == [BugError]
    assert operator.statistics().running == 0


@dataclass(frozen=True)
class Own(RetryStrategy):
    value: Any = None

    def backoff(self, attempt: int, random: float) -> float:
        return self.value


@GROUPS
@pytest.mark.parametrize("value", [nan, -1.0, -inf, None, "1", True, 1 + 2j], ids=repr)
@pytest.mark.parametrize("name", ["backoff", "retry_after"])
@pytest.mark.parametrize("limit", [9.0, inf])
async def test_an_element_whose_backoff_is_no_seconds_fails_with_an_error_that_names_it(
    limit: float, name: str, value: Any, group: int | None, autojump_clock: MockClock
) -> None:
    if name == "backoff":
        retry: RetryStrategy = Own(3, value=value)
    elif value is None:
        return  # no request
    else:
        retry = FixedDelay(3, 0.5, retry_after=lambda error: value)
    function = of_groups(Scripted({1: Step(1.0, error=OSError)}, default=Step(1.0)), group)
    options: Any = {"group": group, "timeout": limit, "retry": retry, "on_error": "dead_letter"}
    async with AsyncWaitOperator(function, source=range(3), **options) as operator:
        assert [result async for result in operator.output] == [0, 2]
        (letter,) = [each async for each in operator.output.dead_letters]
    assert letter.element == 1
    assert isinstance(letter.error, TypeError | ValueError)
    assert str(letter.error).startswith(f"the {name} of {type(retry).__name__}(")


@GROUPS
@pytest.mark.parametrize("value", [inf, 10**400], ids=["inf", "huge"])
@pytest.mark.parametrize("limit", [9.0, inf])
async def test_after_an_infinite_backoff_no_attempt_follows(
    limit: float, value: Any, group: int | None, autojump_clock: MockClock
) -> None:
    function = of_groups(Scripted({1: Step(1.0, error=OSError)}, default=Step(1.0)), group)
    options: Any = {"group": group, "timeout": limit, "retry": Own(3, value=value), "on_error": "dead_letter"}
    async with AsyncWaitOperator(function, source=range(3), **options) as operator:
        assert [result async for result in operator.output] == [0, 2]
        assert [type(each.error) async for each in operator.output.dead_letters] == [OSError]
    assert (operator.statistics().retried, operator.statistics().timed_out) == (0, 0)


HOOKS = [name for name in vars(Observer) if not name.startswith("_")]


@GROUPS
@pytest.mark.parametrize("hook", HOOKS)
async def test_a_hook_that_raises_changes_nothing(
    hook: str, group: int | None, autojump_clock: MockClock, caplog: Any
) -> None:
    observer = type("Broken", (Observer,), {hook: raises})()
    script = Scripted({1: [Step(1.0, error=OSError), Step(1.0)], 2: Step(inf)}, default=Step(1.0))
    async with AsyncWaitOperator(
        of_groups(script, group),
        group=group and 1,
        source=range(6),
        timeout=9.0,
        capacity=2,
        gate=RateLimit(1.0),
        retry=FixedDelay(2, 0.5),
        on_error="skip",
        observer=observer,
    ) as operator:
        assert [result async for result in operator.output] == [0, 1, 3, 4, 5]
    numbers = operator.statistics()
    assert (numbers.completed, numbers.timed_out, numbers.retried, numbers.running) == (5, 1, 1, 0)


@GROUPS
@pytest.mark.parametrize("handler", ["on_error", "on_timeout"])
async def test_a_handler_that_raises_is_the_exception_of_the_operator(
    handler: str, group: int | None, raised_by: Any, autojump_clock: MockClock
) -> None:
    async def handle(*_: Any) -> None:
        raises()

    step = Step(inf) if handler == "on_timeout" else Step(1.0, error=OSError)
    options: Any = {handler: handle, "gate": AtMost(2)}
    function = of_groups(Scripted(default=step), group)
    operator = AsyncWaitOperator(function, source=range(5), timeout=3.0, group=group, **options)
    error = await raised_by(operator, wait_for_ever)
    assert isinstance(error, BugError)
    assert operator.statistics().running == 0


@dataclass
class DataclassGate(Gate):
    """A dataclass has no hash."""

    seconds: float = 1.0
    free_at: float = 0.0

    def delay(self, now: float, weight: float) -> float:
        return max(0.0, self.free_at - now)

    def started(self, now: float, weight: float) -> None:
        self.free_at = now + self.seconds

    def ended(self, now: float, seconds: float, outcome: Outcome, weight: float) -> None: ...


async def test_a_gate_may_be_a_dataclass(autojump_clock: MockClock) -> None:
    recorder: Recorder[Any, Any] = Recorder(Scripted())
    gate = [DataclassGate(), PerKey(DataclassGate(3.0), key=lambda value: value)]
    async with AsyncWaitOperator(recorder, source="aab", mode="unordered", timeout=9.0, gate=gate) as operator:
        assert len([result async for result in operator.output]) == 3
    assert sorted((call.value, call.started) for call in recorder.calls) == [("a", 0.0), ("a", 3.0), ("b", 1.0)]


async def test_a_gate_of_which_another_operator_has_a_call_may_hold_calls_back(autojump_clock: MockClock) -> None:
    """Its delay is inf, and the end of the other operator's call changes it."""
    gate = AtMost(1)
    ends: list[float] = []

    async def run(value: str) -> None:
        async with AsyncWaitOperator(Scripted(default=Step(2.0)), source=value, timeout=9.0, gate=gate) as operator:
            ends.extend([trio.current_time() async for _ in operator.output])

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run, "a")
        nursery.start_soon(run, "b")
    assert ends == [2.0, 4.0]


async def test_a_gate_that_opens_while_a_handler_runs_lets_the_next_call_start(autojump_clock: MockClock) -> None:
    recorder: Recorder[Any, Any] = Recorder(Scripted({0: Step(1.0, error=OSError)}, default=Step(1.0)))

    async def handle(value: int, error: Exception) -> int:
        await trio.sleep(5.0)
        return value

    async with AsyncWaitOperator(
        recorder, source=range(2), timeout=9.0, capacity=2, gate=AtMost(1), on_error=handle
    ) as operator:
        assert [result async for result in operator.output] == [0, 1]
    assert [call.started for call in recorder.calls] == [0.0, 1.0]


async def test_60_slots_start_at_the_instant_at_which_a_gate_opens(autojump_clock: MockClock) -> None:
    recorder: Recorder[Any, Any] = Recorder(Scripted(default=Step(1.0)))

    class OpensAt5(Plain):
        def delay(self, now: float, weight: float) -> float:
            return max(0.0, 5.0 - now)

    async with AsyncWaitOperator(
        recorder, source=range(100), timeout=9.0, capacity=60, gate=OpensAt5(), mode="unordered"
    ) as operator:
        assert len([result async for result in operator.output]) == 100
    assert [call.started for call in recorder.calls] == [5.0] * 60 + [6.0] * 40
