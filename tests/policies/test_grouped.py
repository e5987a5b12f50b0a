"""grouped: when a group is sent, and that the outputs are those of single calls."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.support import outputs
from trio_asyncio_io import AsyncFunction, FixedDelay, NotAsyncError, ordered_wait, unordered_wait
from trio_asyncio_io.policies import cached, grouped, single_flight
from trio_asyncio_io.testing import Recorder

NothingLeft = Callable[[], AbstractContextManager[None]]


class Service:
    """A function of many that returns its values in upper case.

    The result of a value in `errors` is its exception. A call with a value in `poison` raises its exception.
    """

    def __init__(self, latency: float = 0.0, errors: Any = (), poison: Any = ()) -> None:
        self.latency = latency
        self.errors = dict(errors)
        self.poison = dict(poison)
        self.groups: list[list[Any]] = []
        self.instants: list[float] = []
        self.running = 0

    async def __call__(self, values: list[Any]) -> list[Any]:
        self.groups.append(values)
        self.instants.append(trio.current_time())
        self.running += 1
        try:
            await trio.sleep(self.latency)
        finally:
            self.running -= 1
        for value in values:
            if value in self.poison:
                raise self.poison[value]
        return [self.errors.get(value) or str(value).upper() for value in values]


async def arriving(instants: dict[str, float]) -> Any:
    for value, instant in instants.items():
        await trio.sleep_until(instant)
        yield value


# When a group is sent.


async def test_a_full_group_is_sent(autojump_clock: MockClock) -> None:
    service = Service(latency=1.0)
    assert await outputs(ordered_wait("abcdefgh", grouped(service, size=4, age=math.inf), timeout=5.0)) == [*"ABCDEFGH"]
    assert sorted(map(len, service.groups)) == [4, 4]
    assert trio.current_time() == 1.0


async def test_a_group_is_sent_when_its_first_element_has_waited_for_age_seconds(autojump_clock: MockClock) -> None:
    service = Service()
    source = arriving({"a": 0.0, "b": 1.5, "c": 2.5, "d": 4.0, "e": 9.0})
    await outputs(ordered_wait(source, grouped(service, age=2.0), timeout=5.0))
    assert service.groups == [["a", "b"], ["c", "d"], ["e"]]
    assert service.instants == [2.0, 4.5, 9.0]  # the last one at the end of the input


async def test_with_an_age_of_zero_a_group_has_the_elements_that_are_ready(autojump_clock: MockClock) -> None:
    service = Service(latency=1.0)
    source = arriving({"a": 0.0, "b": 0.0, "c": 0.0, "d": 3.0})
    await outputs(ordered_wait(source, grouped(service, age=0), timeout=5.0))
    assert service.groups == [["a", "b", "c"], ["d"]]
    assert service.instants == [0.0, 3.0]


async def test_with_an_age_of_zero_a_full_group_is_sent(autojump_clock: MockClock) -> None:
    service = Service(latency=1.0)
    await outputs(ordered_wait("abcdefg", grouped(service, size=3, age=0), timeout=5.0))
    assert sorted(map(len, service.groups)) == [1, 3, 3]


async def test_a_flush_sends_the_open_group(autojump_clock: MockClock) -> None:
    service = Service()
    function = grouped(service, age=math.inf)
    async with trio.open_nursery() as nursery:
        for value in "ab":
            nursery.start_soon(function, value)
        await wait_all_tasks_blocked()
        assert service.groups == []
        function.flush()
    assert sorted(service.groups[0]) == ["a", "b"]


@pytest.mark.parametrize(
    "wrap", [lambda function: function, single_flight, cached], ids=["grouped", "single_flight", "cached"]
)
async def test_the_end_of_the_input_sends_the_open_group(wrap: Any, autojump_clock: MockClock) -> None:
    service = Service(latency=1.0)
    source = arriving({"a": 0.0, "b": 2.0, "c": 3.0})
    function = wrap(grouped(service, size=2, age=math.inf))
    assert await outputs(ordered_wait(source, function, timeout=5.0)) == ["A", "B", "C"]
    assert (service.groups, service.instants) == ([["a", "b"], ["c"]], [2.0, 3.0])


async def test_a_retry_after_the_end_of_the_input_is_sent_at_once(autojump_clock: MockClock) -> None:
    service = Service(poison={"a": OSError("busy")})
    function = grouped(service, age=math.inf)
    with pytest.raises(OSError, match="busy"):
        await outputs(ordered_wait("a", function, timeout=9.0, retry=FixedDelay(2, 1.0)))
    assert service.instants == [0.0, 1.0, 2.0]


async def test_a_flush_without_a_group_does_nothing() -> None:
    function = grouped(Service(), age=0)
    function.flush()
    assert await function("a") == "A"
    function.flush()
    assert await function("b") == "B"


async def test_a_flush_reaches_a_group_inside_a_group(autojump_clock: MockClock) -> None:
    async def upper(groups: list[list[str]]) -> list[list[str]]:
        return [[value.upper() for value in values] for values in groups]

    function = grouped(grouped(upper, age=math.inf), age=math.inf)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(function, "a")
        await wait_all_tasks_blocked()
        function.flush()
    assert (function.calls, function.sent) == (1, 1)


# Results and exceptions.


async def test_each_element_gets_its_own_result_or_exception(autojump_clock: MockClock) -> None:
    failed = []

    async def on_error(value: str, error: Exception) -> None:
        failed.append((value, error, error.__notes__ if hasattr(error, "__notes__") else []))

    missing = KeyError("missing")
    function = grouped(Service(latency=1.0, errors={"b": missing, "d": missing}))
    assert await outputs(ordered_wait("abcd", function, timeout=5.0, on_error=on_error)) == ["A", None, "C", None]
    failed.sort(key=lambda failure: failure[0])
    assert [(value, repr(error), notes) for value, error, notes in failed] == [
        ("b", "KeyError('missing')", []),
        ("d", "KeyError('missing')", []),
    ]
    assert failed[0][1] is not failed[1][1]


async def test_only_the_failed_elements_are_retried(autojump_clock: MockClock) -> None:
    service = Service(errors={"b": OSError("busy")})

    async def once_busy(values: list[str]) -> list[Any]:
        results = await service(values)
        service.errors = {}
        return results

    function = grouped(once_busy, age=1.0)
    assert await outputs(ordered_wait("abc", function, timeout=9.0, retry=FixedDelay(1, 1.0))) == ["A", "B", "C"]
    assert [sorted(group) for group in service.groups] == [["a", "b", "c"], ["b"]]


async def test_a_call_that_raises_fails_every_element_of_its_group(autojump_clock: MockClock) -> None:
    errors = []

    async def on_error(value: str, error: Exception) -> None:
        error.add_note(value)
        errors.append(error)

    function = grouped(Service(latency=1.0, poison={"b": OSError("busy")}), size=3)
    assert await outputs(ordered_wait("abcdef", function, timeout=5.0, on_error=on_error)) == [None, None, None, *"DEF"]
    assert sorted((str(error), *error.__notes__) for error in errors) == [("busy", "a"), ("busy", "b"), ("busy", "c")]


@pytest.mark.parametrize(
    ("result", "error", "message"),
    [
        (["A"], ValueError, "as many results as it gets values, but grouped.* returned 1 for 2"),
        ([], ValueError, "returned 0 for 2"),
        ("AB", TypeError, "must return a list, but grouped.* returned 'AB'"),
        (None, TypeError, "returned None"),
    ],
)
@pytest.mark.parametrize("split", [False, True])
async def test_a_result_of_the_wrong_type_or_length_fails_every_element(
    result: Any, error: type[Exception], message: str, split: bool
) -> None:
    async def many(values: list[str]) -> Any:
        return result

    async def call(value: str) -> None:
        with pytest.raises(error, match=message):
            await function(value)

    function = grouped(many, age=0, split=split)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(call, "a")
        nursery.start_soon(call, "b")
    assert function.calls == 1


async def test_a_function_of_several_columns_gets_tuples() -> None:
    async def products(pairs: list[tuple[int, int]]) -> list[int]:
        return [a * b for a, b in pairs]

    assert await grouped(products, age=0)(3, 4) == 12


async def test_the_function_may_return_a_tuple() -> None:
    async def many(values: list[str]) -> tuple[str, ...]:
        return tuple(values)

    assert await grouped(many, age=0)("a") == "a"


async def test_a_function_that_is_not_async_is_refused() -> None:
    with pytest.raises(NotAsyncError, match="must be async"):
        await grouped(sorted, age=0, split=True)("a")


async def test_calls_and_their_elements_are_counted(autojump_clock: MockClock) -> None:
    function = grouped(Service(), size=2, age=0)
    await outputs(ordered_wait("abcde", function, timeout=5.0))
    assert (function.calls, function.sent) == (3, 5)


# Splitting.


async def test_halves_are_called_one_after_the_other_down_to_the_element_that_fails(autojump_clock: MockClock) -> None:
    service = Service(latency=1.0, poison={"c": OSError("bad c")})
    failed = []

    async def on_error(value: str, error: Exception) -> str:
        failed.append((value, str(error)))
        return "-"

    function = grouped(service, size=4, age=math.inf, split=True)
    source = arriving({"a": 0.0, "b": 0.0, "c": 0.0, "d": 0.0})
    assert await outputs(ordered_wait(source, function, timeout=9.0, on_error=on_error)) == ["A", "B", "-", "D"]
    assert ["".join(group) for group in service.groups] == ["abcd", "ab", "cd", "c", "d"]
    assert service.instants == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert failed == [("c", "bad c")]
    assert (function.calls, function.sent) == (5, 10)


async def test_an_exception_among_the_results_splits_no_group(autojump_clock: MockClock) -> None:
    service = Service(errors={"b": OSError("bad b")})
    await outputs(ordered_wait("abc", grouped(service, split=True), timeout=5.0, on_error="skip"))
    assert len(service.groups) == 1


# Cancellation.


async def test_an_element_whose_deadline_expires_leaves_alone(autojump_clock: MockClock) -> None:
    service = Service(latency=1.5)
    source = arriving({"a": 0.0, "b": 1.0})
    function = grouped(service, size=2, age=math.inf)
    assert await outputs(ordered_wait(source, function, timeout=2.0, on_error="skip")) == ["B"]
    assert (service.groups, service.running) == ([["a", "b"]], 0)


async def test_the_value_of_an_element_that_leaves_early_is_not_sent(autojump_clock: MockClock) -> None:
    service = Service()
    function = grouped(service, age=3.0)
    source = arriving({"a": 0.0, "b": 2.0, "c": 9.0})
    assert await outputs(ordered_wait(source, function, timeout=2.5, on_error="skip")) == ["B", "C"]
    assert (service.groups, service.instants) == ([["b"], ["c"]], [3.0, 9.0])
    assert (function.calls, function.sent) == (2, 2)


async def test_a_group_without_members_makes_no_call(autojump_clock: MockClock, nothing_left: NothingLeft) -> None:
    service = Service()
    function = grouped(service, age=3.0)
    with nothing_left():
        for _ in range(2):
            with trio.move_on_after(1.0):
                await function("a")
    assert (service.groups, trio.current_time()) == ([], 2.0)
    assert await function("b") == "B"
    assert (service.groups, trio.current_time()) == ([["b"]], 5.0)


async def test_a_call_that_nobody_waits_for_is_cancelled(autojump_clock: MockClock, nothing_left: NothingLeft) -> None:
    service = Service(latency=60.0)
    with nothing_left():
        await outputs(unordered_wait("abc", grouped(service), timeout=2.0, on_error="skip"))
        assert service.running == 0
    assert trio.current_time() == 2.0


async def test_no_task_is_left_when_the_operator_stops(autojump_clock: MockClock, nothing_left: NothingLeft) -> None:
    service = Service(latency=1.0, errors={"a": OSError("busy")})
    with nothing_left(), pytest.raises(OSError, match="busy"):
        await outputs(unordered_wait("abcdefg", grouped(service, size=3, age=math.inf), timeout=math.inf))
    assert service.running == 0


async def test_no_element_joins_an_abandoned_group(autojump_clock: MockClock) -> None:
    """Repeated, because Trio runs ready tasks in random order."""
    function = grouped(Service(), age=1.0)
    for _ in range(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(function, "left")
            await wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
            with trio.CancelScope(shield=True):
                await trio.lowlevel.checkpoint()
                assert await function("a") == "A"


async def test_a_group_whose_members_leave_as_it_is_sent_makes_no_call(nothing_left: NothingLeft) -> None:
    """Repeated, because Trio runs ready tasks in random order."""
    was_cancelled = []

    async def many(values: list[str]) -> list[str]:
        was_cancelled.append(trio.current_effective_deadline() == -math.inf)
        await trio.sleep_forever()
        return values

    function = grouped(many, age=math.inf)
    for _ in range(30):
        with nothing_left():
            async with trio.open_nursery() as nursery:
                nursery.start_soon(function, "a")
                await wait_all_tasks_blocked()
                function.flush()
                nursery.cancel_scope.cancel()
    assert not any(was_cancelled)


# Opening, closing and composition.


class Client(AsyncFunction[Any, list[str]]):
    def __init__(self) -> None:
        self.lines: list[str] = []

    async def open(self) -> None:
        self.lines.append("open")

    async def invoke(self, values: list[str]) -> list[str]:
        self.lines.append("".join(values))
        if "slow" in values:
            await trio.sleep_forever()
        return [value.upper() for value in values]

    async def timeout(self, value: str) -> str:
        return f"late {value}"

    async def close(self) -> None:
        self.lines.append("close")


async def test_the_function_is_opened_and_closed_with_the_policy(autojump_clock: MockClock) -> None:
    client = Client()
    assert await outputs(ordered_wait(["a"], grouped(client), timeout=5.0)) == ["A"]
    assert client.lines == ["open", "a", "close"]


async def test_the_timeout_method_of_the_function_is_called_for_one_element(autojump_clock: MockClock) -> None:
    assert await outputs(ordered_wait(["slow"], grouped(Client()), timeout=2.0)) == ["late slow"]


async def test_cached_around_single_flight_around_grouped_sends_each_key_once(autojump_clock: MockClock) -> None:
    service = Service(latency=1.0)
    function = cached(single_flight(grouped(service, size=3, age=0.5)))
    assert await outputs(ordered_wait("abac" * 5, function, timeout=9.0, capacity=7)) == [*"ABAC"] * 5
    assert sorted(value for group in service.groups for value in group) == ["a", "b", "c"]
    assert callable(function.flush)


async def many(values: list[str]) -> list[str]:
    return values


def test_it_pickles_with_its_options() -> None:
    copy = pickle.loads(pickle.dumps(grouped(many, size=3, age=1.0, split=True)))
    assert (copy.function, copy._size, copy._age, copy._split) == (many, 3, 1.0, True)


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"size": 0}, ValueError, "size must be at least 1, got 0"),
        ({"size": None}, TypeError, "size must be a whole number, got None"),
        ({"age": -1.0}, ValueError, "age must be seconds, not negative and not NaN, got -1.0"),
        ({"age": math.nan}, ValueError, "age must be seconds, not negative and not NaN, got nan"),
        ({"age": None}, TypeError, "age must be seconds as a number, got None"),
        ({"split": "yes"}, TypeError, "split must be True or False, got 'yes'"),
    ],
)
def test_an_illegal_option_is_refused(keywords: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        grouped(many, **keywords)


# Compared with single calls.


ELEMENTS = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.0, 0.25, 1.0]),  # seconds after the one before
        st.sampled_from(["good", "good", "good", "error", "poison"]),
    ),
    max_size=20,
)


@given(
    elements=ELEMENTS,
    size=st.integers(1, 6),
    age=st.sampled_from([0.0, 0.125, 1.5]),
    latency=st.sampled_from([0.0, 0.5, 2.25]),
    capacity=st.integers(1, 30),
    retry=st.sampled_from([None, FixedDelay(1, 0.25)]),
)
@settings(deadline=None)
def test_the_outputs_are_those_of_single_calls(
    *,
    elements: list[tuple[float, str]],
    size: int,
    age: float,
    latency: float,
    capacity: int,
    retry: FixedDelay | None,
) -> None:
    async def source() -> Any:
        for number, (gap, kind) in enumerate(elements):
            await trio.sleep(gap)
            yield number, kind

    async def single(value: tuple[int, str]) -> int:
        await trio.sleep(latency)
        if value[1] != "good":
            raise OSError(*value)
        return value[0]

    async def many(values: list[tuple[int, str]]) -> list[Any]:
        await trio.sleep(latency)
        assert 1 <= len(values) <= size
        for value in values:
            if value[1] == "poison":
                raise OSError(*value)
        return [OSError(*value) if value[1] == "error" else value[0] for value in values]

    async def on_error(value: tuple[int, str], error: Exception) -> str:
        assert error.args == value
        assert not hasattr(error, "__notes__")
        return repr(error)

    async def main() -> None:
        before = trio.lowlevel.current_statistics().tasks_living
        expected, got = [
            await outputs(
                ordered_wait(source(), function, timeout=1e6, capacity=capacity, on_error=on_error, retry=retry)
            )
            for function in (single, grouped(many, size=size, age=age, split=True))
        ]
        assert got == expected
        assert trio.lowlevel.current_statistics().tasks_living == before

    trio.run(main, clock=MockClock(autojump_threshold=0))


@given(elements=ELEMENTS, size=st.integers(1, 6), age=st.sampled_from([0.0, 0.125, 1.5]))
@settings(deadline=None)
def test_without_split_a_failed_call_fails_exactly_its_group(
    elements: list[tuple[float, str]], size: int, age: float
) -> None:
    groups: list[list[Any]] = []

    async def source() -> Any:
        for number, (gap, kind) in enumerate(elements):
            await trio.sleep(gap)
            yield number, kind

    async def many(values: list[tuple[int, str]]) -> list[Any]:
        groups.append(values)
        if any(kind == "poison" for _, kind in values):
            raise OSError("poison")
        return [OSError("error") if kind == "error" else number for number, kind in values]

    async def on_error(value: tuple[int, str], error: Exception) -> str:
        return str(error)

    async def main() -> None:
        function = grouped(many, size=size, age=age)
        got = await outputs(ordered_wait(source(), function, timeout=1e6, on_error=on_error))
        expected: dict[int, Any] = {}
        for group in groups:
            poisoned = any(kind == "poison" for _, kind in group)
            for number, kind in group:
                expected[number] = "poison" if poisoned else "error" if kind == "error" else number
        assert got == [expected[number] for number in range(len(elements))]

    trio.run(main, clock=MockClock(autojump_threshold=0))


async def test_a_recorder_inside_records_one_call_per_group(autojump_clock: MockClock) -> None:
    recorder = Recorder(Service(latency=1.0))
    await outputs(ordered_wait("abcdef", grouped(recorder, size=2, age=math.inf), timeout=5.0, capacity=4))
    assert recorder.peak_running == 2
    assert [len(values) for values in recorder.values] == [2, 2, 2]


@pytest.mark.parametrize("exit_exception", [SystemExit(3), KeyboardInterrupt()], ids=lambda error: type(error).__name__)
async def test_an_exit_exception_is_raised_unchanged(exit_exception: BaseException, autojump_clock: MockClock) -> None:
    """Not a group of copies, because its exit status would be 1."""

    async def exits(values: list[str]) -> list[str]:
        await trio.sleep(1.0)
        raise exit_exception

    with pytest.raises(type(exit_exception)) as caught:
        await outputs(ordered_wait("abc", grouped(exits, size=3), timeout=5.0))
    assert caught.value is exit_exception
