"""Gates at an operator: who waits, for how long, and what the gates hear of it."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.plain_gates import Listener
from tests.support import outputs
from trio_asyncio_io import (
    AsyncWaitOperator,
    ElementTimeoutError,
    ExponentialBackoff,
    FixedDelay,
    Histogram,
    ordered_wait,
    transient,
    unordered_wait,
)
from trio_asyncio_io.gates import Auto, Budget, CircuitBreaker, Gate, Outcome, PerKey, RateLimit, RefusedError
from trio_asyncio_io.policies import gated
from trio_asyncio_io.progress import summary
from trio_asyncio_io.testing import Recorder, Scripted, Step, fails_first

pytestmark = pytest.mark.usefixtures("no_cpu_time")


class BusyError(Exception):
    """A status 429, perhaps with a `Retry-After`."""

    status_code = 429

    def __init__(self, retry_after: float | None) -> None:
        super().__init__("busy")
        self.retry_after = retry_after


class Spy(Gate):
    """A gate that admits calls from the instants in `opens` on, one each, and records what it hears."""

    def __init__(self, opens: Iterable[float] = ()) -> None:
        self.opens = list(opens)
        self.heard: list[tuple[Any, ...]] = []

    def delay(self, now: float, weight: float) -> float:
        return max(0.0, self.opens[0] - now) if self.opens else 0.0

    def started(self, now: float, weight: float) -> None:
        self.heard.append(("started", now, weight))
        del self.opens[:1]

    def ended(self, now: float, seconds: float, outcome: Outcome, weight: float) -> None:
        self.heard.append((outcome.kind, now, seconds))


def starts_of(recorder: Recorder[Any, Any]) -> list[tuple[Any, float]]:
    return [(call.value, call.started) for call in recorder.calls]


async def test_calls_wait_for_the_gate_in_every_mode(async_wait: Any, autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted(default=Step(0.5)))
    assert await outputs(async_wait("abc", recorder, timeout=1.0, gate=RateLimit(1.0))) == ["a", "b", "c"]
    assert starts_of(recorder) == [("a", 0.0), ("b", 1.0), ("c", 2.0)]


async def test_the_wait_counts_as_gate_wait_and_neither_as_latency_nor_as_slot_wait(autojump_clock: MockClock) -> None:
    async with ordered_wait("abc", Scripted(default=Step(0.5)), timeout=0.6, gate=RateLimit(1.0)) as results:
        async for _ in results:
            pass
    numbers = results.statistics()
    assert (numbers.slot_wait_seconds, numbers.gate_wait_seconds) == (0.0, 1.0 + 2.0)
    assert numbers.gate_wait == Histogram.of([1.0, 2.0])
    assert numbers.latency == Histogram.of([0.5] * 3)
    assert numbers.peak_running == 1


async def test_a_call_waits_for_a_slot_first(autojump_clock: MockClock) -> None:
    script = Scripted(default=Step(3.0))
    async with ordered_wait("ab", script, capacity=1, timeout=5.0, gate=RateLimit(0.2)) as results:
        async for _ in results:
            pass
    numbers = results.statistics()
    assert (numbers.slot_wait_seconds, numbers.gate_wait_seconds) == (3.0, 2.0)


async def test_all_gates_must_admit_a_call(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted())
    gate = [RateLimit(1.0, burst=3), RateLimit(0.5, burst=2)]
    await outputs(ordered_wait("abcd", recorder, timeout=1.0, gate=gate))
    assert starts_of(recorder) == [("a", 0.0), ("b", 0.0), ("c", 2.0), ("d", 4.0)]


async def test_each_part_of_a_wait_counts_for_the_gate_that_held_the_call_back(autojump_clock: MockClock) -> None:
    gate = [RateLimit(1.0), Spy([10.0] * 3)]
    async with ordered_wait("abc", Scripted(default=Step(0.5)), capacity=2, timeout=1.0, gate=gate) as results:
        assert [trio.current_time() async for _ in results] == [10.5, 11.5, 12.5]
    numbers = results.statistics()
    assert numbers.seconds_by_gate == {"Spy": 2 * 10.0, "RateLimit": 1.0 + (12.0 - 10.5)}
    assert numbers.gate_wait_seconds == 22.5
    assert "Summed over all calls: Spy 20 s, RateLimit 2.5 s." in str(results.explain())


async def test_a_call_that_comes_later_waits_for_a_gate_only_from_then_on(autojump_clock: MockClock) -> None:
    async def source() -> Any:
        yield "a"
        await trio.sleep(4.0)
        yield "b"

    gate = [RateLimit(1.0), Spy([10.0] * 2)]
    async with ordered_wait(source(), Scripted(), timeout=1.0, gate=gate) as results:
        assert [trio.current_time() async for _ in results] == [10.0, 11.0]
    assert results.statistics().seconds_by_gate == {"Spy": 10.0 + 6.0, "RateLimit": 1.0}


async def test_a_weight_is_computed_from_the_value(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted())
    await outputs(ordered_wait(["1234", "12", "1"], recorder, timeout=1.0, gate=RateLimit(1.0, weight=len)))
    assert starts_of(recorder) == [("1234", 0.0), ("12", 4.0), ("1", 6.0)]


@pytest.mark.parametrize(
    ("value", "message", "notes"),
    [
        (5, "object of type 'int' has no len()", ["raised by the weight of RateLimit(rate=1.0, burst=1.0)"]),
        ("", "weight of RateLimit(rate=1.0, burst=1.0) must be finite and not negative, got nan", []),
    ],
    ids=["raises", "no weight"],
)
async def test_a_weight_that_raises_stops_the_operator(
    value: Any, message: str, notes: list[str], raised_by: Any, autojump_clock: MockClock
) -> None:
    gate = RateLimit(1.0, weight=lambda value: len(value) if value != "" else float("nan"))
    operator = AsyncWaitOperator(Scripted(), source=["a", value, "b"], timeout=1.0, gate=gate, on_error="skip")
    error = await raised_by(operator, wait_for_ever)
    assert str(error) == message
    assert error.__notes__ == [*notes, f"element 1, {value!r}, before its first attempt"]
    assert operator.statistics().running == 0


async def test_a_retry_passes_the_gate_before_newer_elements_and_its_time_stands_still(
    autojump_clock: MockClock,
) -> None:
    script = Scripted({"a": [Step(0.5, error=OSError), Step(0.5)]}, default=Step(0.5))
    recorder = Recorder(script)
    retry = FixedDelay(1, 0.25)
    async with ordered_wait("abc", recorder, timeout=1.5, retry=retry, gate=RateLimit(0.2)) as results:
        assert [result async for result in results] == ["a", "b", "c"]
    assert starts_of(recorder) == [("a", 0.0), ("a", 5.0), ("b", 10.0), ("c", 15.0)]
    numbers = results.statistics()
    assert numbers.gate_wait_seconds == (5.0 - 0.75) + 10.0 + 15.0
    assert numbers.latency == Histogram.of([1.25, 0.5, 0.5])


async def test_after_its_wait_a_retry_has_the_rest_of_its_timeout(autojump_clock: MockClock) -> None:
    script = Scripted({"a": [Step(1.0, error=OSError), Step(inf)]}, default=Step(2.0))
    recorder = Recorder(script)
    gate = Spy([0.0, 0.0, 10.0])
    async with unordered_wait("ab", recorder, timeout=2.5, retry=FixedDelay(1, 0.5), gate=gate, on_error="skip") as it:
        assert [(result, trio.current_time()) async for result in it] == [("b", 2.0)]
    assert [(call.value, call.started, call.ended) for call in recorder.calls] == [
        ("a", 0.0, 1.0),
        ("b", 0.0, 2.0),
        ("a", 10.0, 11.0),  # one second of its timeout was left
    ]
    assert it.statistics().timed_out == 1


async def test_no_call_that_has_its_slot_starts_after_a_failure(autojump_clock: MockClock) -> None:
    """The first worker gives both calls their slots."""
    calls = []

    async def call(value: str) -> None:
        calls.append(value)
        raise LookupError

    with pytest.raises(LookupError):
        await outputs(ordered_wait("ab", call, timeout=5.0, capacity=2, gate=RateLimit(1e6, burst=2)))
    assert calls == ["a"]


async def test_a_gate_hears_for_how_long_each_attempt_ran_and_what_it_weighed(autojump_clock: MockClock) -> None:
    gate = Listener(weight=float)
    script = Scripted({3: [Step(1.0, error=TimeoutError), Step(2.0, error=TimeoutError), Step(9.0)]})
    options: Any = {"timeout": 17.0, "gate": gate, "retry": FixedDelay(2, 5.0), "on_error": "skip"}
    await outputs(ordered_wait([3], script, **options))
    assert [end[1:] for end in gate.ends] == [(1.0, 1.0, 3.0), (8.0, 2.0, 3.0), (17.0, 4.0, 3.0)]


async def test_a_gate_hears_for_how_long_each_call_of_a_group_ran(autojump_clock: MockClock) -> None:
    gate = Listener(weight=float)

    async def fail(values: list[int]) -> list[int]:
        await trio.sleep(1.0)
        raise TimeoutError

    options: Any = {"timeout": 60.0, "gate": gate, "retry": FixedDelay(1, 5.0), "on_error": "skip", "group": 2}
    await outputs(ordered_wait([1, 2, 4], fail, **options, group_wait=0.5))
    assert sorted(end[1:] for end in gate.ends) == [(1.0, 1.0, 3.0), (1.0, 1.0, 4.0), (7.0, 1.0, 3.0), (7.0, 1.0, 4.0)]


async def wait_for_ever(operator: Any) -> None:
    await trio.sleep_forever()


class Refusing(Gate):
    """Refuses the calls with these numbers, counted from 0, with this error."""

    def __init__(self, error: Exception, *numbers: int) -> None:
        self.error, self.numbers, self.asked = error, numbers, 0

    def delay(self, now: float, weight: float) -> float:
        self.asked += 1
        if self.asked - 1 in self.numbers:
            raise self.error
        return 0.0


async def test_a_refused_call_is_the_failure_of_its_element(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted({"c": fails_first(1, OSError)}))
    gate = Refusing(RefusedError("closed"), 1, 3)
    async with ordered_wait(
        "abcd", recorder, capacity=1, timeout=1.0, gate=gate, on_error="dead_letter", retry=FixedDelay(3, 0.0)
    ) as results:
        assert [result async for result in results] == ["a", "d"]
        failed = [each async for each in results.dead_letters]
    assert [(each.element, each.attempts) for each in failed] == [("b", 0), ("c", 1)]
    assert recorder.values == ["a", "c", "d"]


@pytest.mark.parametrize("number", [1, 2], ids=["first call", "retry"])
async def test_any_other_exception_of_a_gate_stops_the_operator(
    number: int, raised_by: Any, autojump_clock: MockClock
) -> None:
    recorder = Recorder(Scripted({"b": fails_first(1, OSError)}))
    gate = Refusing(ConnectionError("down for an hour"), number)
    operator = AsyncWaitOperator(
        recorder, source="abc", capacity=1, timeout=1.0, gate=gate, on_error="skip", retry=FixedDelay(3, 0.0)
    )
    error = await raised_by(operator, wait_for_ever)
    assert str(error) == "down for an hour"
    assert recorder.running == 0
    assert [each.element for each in operator.snapshot().elements if each.results is None] == ["b", "c"]


@pytest.mark.parametrize("close", [True, False], ids=["output closed", "block left"])
async def test_calls_that_wait_at_the_end_are_not_made(close: bool, autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted(default=Step(1.0)))
    async with AsyncWaitOperator(recorder, timeout=5.0, gate=Spy([0.0, 2.0])) as operator:
        for value in "abc":
            await operator.put(value)
        assert await operator.output.receive() == "a"
        if close:
            operator.output.close()
            await trio.sleep(5.0)
    assert recorder.values == ["a"]
    assert [element.element for element in operator.snapshot().elements] == ["b", "c"]


async def test_calls_that_wait_for_a_gate_when_the_operator_ends_have_waited_for_it(autojump_clock: MockClock) -> None:
    """A new record since 0.0, and a retry since 1.0."""
    script = Scripted({"a": Step(1.0, error=OSError)})
    with trio.move_on_after(7.0):
        async with ordered_wait("ab", script, timeout=inf, gate=RateLimit(0.01), retry=FixedDelay(1, 0.0)) as results:
            await trio.sleep_forever()
    numbers = results.statistics()
    assert numbers.gate_wait_seconds == 7.0 + 6.0
    assert numbers.seconds_by_gate == {"RateLimit": 7.0 + 6.0}
    assert numbers.cancelled == 1


async def test_gates_of_one_class_are_told_apart_by_their_names(autojump_clock: MockClock) -> None:
    requests = RateLimit(10.0, name="requests")
    tokens = RateLimit(15.0, name="tokens", weight=lambda value: 2.0)
    function = Scripted(default=Step(0.1))
    async with ordered_wait(range(20), function, timeout=1.0, gate=[requests, tokens]) as results:
        async for _ in results:
            pass
    waits = results.statistics().seconds_by_gate
    assert {*waits} == {"RateLimit 'tokens'"}
    assert "RateLimit 'tokens'" in str(results.explain())
    assert "gated by RateLimit 'tokens'" in summary(results.statistics(), 1.0)


LIMIT, NAMED = RateLimit(1.0), RateLimit(1.0, name="weather")


@pytest.mark.parametrize("twice", [[LIMIT, LIMIT], [NAMED, RateLimit(1.0, name="weather")]])
def test_a_gate_that_is_given_twice_is_refused(twice: list[Gate]) -> None:
    message = (
        r"^gate must not have the same gate twice, got RateLimit\(rate=1.0, .*\) again: give it once, or give each"
    )
    for use in (
        lambda: ordered_wait("ab", Scripted(), timeout=1.0, gate=twice),
        lambda: PerKey(twice, key=len),
        lambda: gated(Scripted(), twice),
    ):
        with pytest.raises(ValueError, match=message):
            use()


@pytest.mark.parametrize("gate", [5, "gate", [RateLimit(1.0), 5]], ids=["number", "text", "list"])
def test_a_gate_that_is_none_is_refused(gate: Any) -> None:
    with pytest.raises(
        TypeError, match=r"^gate must be a Gate such as RateLimit\(10.0\), a PerKey or a list of them, got "
    ):
        ordered_wait("ab", Scripted(), timeout=1.0, gate=gate)


@pytest.mark.parametrize("capacity", ["all", "Auto", "", "100", (8, 200), [8, 200]], ids=repr)
def test_a_capacity_is_one_number(capacity: Any) -> None:
    with pytest.raises(TypeError, match=r'^capacity must be a whole number, "auto" or a gates.Auto, got '):
        ordered_wait("ab", Scripted(), timeout=1.0, capacity=capacity)


# A service that accepts no calls

DAYS = 16 * 86_400.0


def host(row: int) -> int:
    return row % 2


@pytest.mark.parametrize(
    "gate",
    [
        lambda: Auto(most=100),
        lambda: [RateLimit(1e6), Auto(most=100)],
        lambda: PerKey(Auto(most=100), key=host),
    ],
    ids=["for all", "in a list", "per key"],
)
async def test_a_quota_that_is_used_up_ends_a_run_of_many_rows_soon(gate: Any, autojump_clock: MockClock) -> None:
    calls = 0

    async def call(row: int) -> None:
        nonlocal calls
        calls += 1
        await trio.sleep(0.05)
        raise BusyError(DAYS)

    retry = ExponentialBackoff(3, 0.2, 10, retry_on=transient)
    with pytest.raises(BusyError) as raised:
        await outputs(ordered_wait(range(1000), call, timeout=30.0, gate=gate(), retry=retry, on_error="skip"))
    assert 300.0 <= trio.current_time() < 400.0
    assert calls < 150
    assert "asks to wait 16 days" in raised.value.__notes__[-1]


@pytest.mark.parametrize("gate", [None, Auto(most=100)], ids=["without a gate", "with one"])
async def test_a_row_whose_service_asks_to_wait_beyond_its_deadline_fails_at_once(
    gate: Any, autojump_clock: MockClock
) -> None:
    recorder = Recorder(Scripted(default=Step(0.05, error=BusyError(31.0))))
    retry = ExponentialBackoff(3, 0.2, 10, retry_on=transient)
    with pytest.raises(ElementTimeoutError):
        await outputs(ordered_wait([1], recorder, timeout=30.0, gate=gate, retry=retry))
    assert trio.current_time() == pytest.approx(0.05)
    assert len(recorder.calls) == 1


@pytest.mark.parametrize(
    ("gate", "error"),
    [(Auto(most=1), BusyError(DAYS)), (CircuitBreaker(calls=1), ConnectionError())],
    ids=["auto", "breaker"],
)
def test_a_gate_that_has_given_up_makes_calls_in_the_next_run(gate: Gate, error: Exception) -> None:
    """Its clock stands still between two runs."""

    async def main(rows: int, call: Any) -> list[int]:
        return await outputs(ordered_wait(range(rows), call, capacity=1, timeout=5.0, gate=gate, on_error="skip"))

    with pytest.raises(type(error)):
        trio.run(main, 1000, Scripted(default=Step(error=error)), clock=MockClock(autojump_threshold=0))
    assert trio.run(main, 2, Scripted(), clock=MockClock(autojump_threshold=0)) == [0, 1]


class WorkerSteps(trio.abc.Instrument):
    """Counts how often Trio lets a worker run."""

    def __init__(self) -> None:
        self.count = 0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.count += task.name == "trio_asyncio_io worker"


@pytest.mark.parametrize(
    ("gate", "steps"),
    [(RateLimit(1e9, burst=1e6), 1), (Budget(1e9), 1), (PerKey(Budget(1e9), key=bool), 1), (Spy(), 1.75)],
    ids=lambda value: type(value).__name__,
)
async def test_a_worker_waits_for_other_ends_only_before_a_gate_that_reacts_to_them(
    gate: Gate | PerKey, steps: float, autojump_clock: MockClock
) -> None:
    """The last one of four waits for none."""

    async def sleeps(value: int) -> int:
        await trio.sleep(1.0)
        return value

    counted = WorkerSteps()
    trio.lowlevel.add_instrument(counted)
    try:
        async with ordered_wait(range(400), sleeps, timeout=5.0, capacity=4, gate=gate) as results:
            assert [result async for result in results] == list(range(400))
    finally:
        trio.lowlevel.remove_instrument(counted)
    assert counted.count / 400 == pytest.approx(steps, abs=0.1)
