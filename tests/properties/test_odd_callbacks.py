"""Each callback with odd values and exceptions: nothing hangs or leaks, and each record is accounted for once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from math import inf, nan
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.plain_gates import AtMost
from tests.support import thorough_except
from trio_asyncio_io import (
    AsyncWaitOperator,
    FixedDelay,
    Observer,
    RetryStrategy,
    StreamRecord,
    Watermark,
    assign_watermarks,
)
from trio_asyncio_io.gates import PerKey, RateLimit
from trio_asyncio_io.integration import KnowsOutputs

NUMBER = 12
ODD = 3  # the element for which a callback is odd
LONG = 100_000.0  # no run takes as long

VALUES = [nan, inf, -1, None, "1", 10**400]
ERRORS = [
    StopIteration("end"),
    StopAsyncIteration("end"),
    GeneratorExit("exit"),
    KeyboardInterrupt("interrupt"),
    ExceptionGroup("group", [ValueError("one"), OSError("two")]),
    BaseExceptionGroup("group", [ValueError("one"), KeyboardInterrupt("two")]),
]
HOOKS = [name for name in vars(Observer) if not name.startswith("_")]


def odd(oddity: Any) -> Any:
    """Raise it, or return it."""
    if isinstance(oddity, BaseException):
        raise type(oddity)(*oddity.args)
    return oddity


class Function:
    """Answers each value with itself, or with a list of itself."""

    def __init__(self, steps: dict[str, Any], group: int | None, *, flatten: bool) -> None:
        self._steps, self._group, self._flatten = steps, group, flatten
        self.running = 0

    async def invoke(self, value: Any) -> Any:
        self.running += 1
        try:
            await trio.sleep(0.25)
            return await self._one(value) if self._group is None else [await self._one(each) for each in value]
        finally:
            self.running -= 1

    async def _one(self, value: Any) -> Any:
        step = self._steps.get("function") if value == ODD else None
        result = value if step is None else await step()
        return [result] if self._flatten and step is None else result


class KnowingFunction(Function, KnowsOutputs):
    def known(self, value: Any) -> Any:
        return self._steps["known"](value)


@dataclass(frozen=True)
class Own(RetryStrategy):
    oddity: Any = None

    def backoff(self, attempt: int, random: float) -> float:
        return odd(self.oddity)


class OddIterable:
    def __init__(self, oddity: Any) -> None:
        self._oddity = oddity

    def __iter__(self) -> Iterator[Any]:
        yield odd(self._oddity)


class OddIterator(OddIterable):
    def __iter__(self) -> Iterator[Any]:
        return odd(self._oddity)


class OddSource:
    """Raises, or gives the odd value, in the place of one element."""

    def __init__(self, oddity: Any) -> None:
        self._oddity, self._position = oddity, -1

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        self._position += 1
        if self._position == ODD:
            return odd(self._oddity)
        if self._position == NUMBER:
            raise StopIteration
        return self._position


async def async_source(oddity: Any) -> AsyncIterator[Any]:
    for number in range(NUMBER):
        yield odd(oddity) if number == ODD else number


def case(  # noqa: C901, PLR0912, PLR0915 - a table
    name: str, oddity: Any, group: int | None, mode: str
) -> tuple[dict[str, Any], dict[str, Any], list[Any]]:
    """The options, the steps of the function, and the gates."""

    def for_odd(default: Any) -> Callable[..., Any]:
        return lambda value, *_: odd(oddity) if value == ODD else default(value)

    async def handle(*_: Any) -> Any:
        return odd(oddity)

    async def fail() -> Any:
        raise OSError("busy")

    async def be_odd() -> Any:
        return odd(oddity)

    async def fail_to_clean_up() -> Any:
        async def child() -> None:
            try:
                await trio.sleep_forever()
            finally:
                odd(oddity)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(child)
            await trio.sleep_forever()

    gates: list[Any] = [AtMost(1)]
    options: dict[str, Any] = {"gate": gates, "source": range(NUMBER), "retry": FixedDelay(2, 0.5)}
    steps: dict[str, Any] = {}
    match name:
        case "function":
            steps["function"] = be_odd
        case "unwinding":
            steps["function"] = fail_to_clean_up
        case "key":
            if mode == "keyed":
                options["key"] = for_odd(lambda value: value % 3)
            else:
                gates.append(PerKey(RateLimit(100.0), key=for_odd(lambda value: value % 3)))
        case "weight":
            gates.append(RateLimit(100.0, burst=10, weight=for_odd(lambda value: 1.0)))
        case "known":
            steps["known"] = for_odd(lambda value: None)
        case "on_timeout":
            steps["function"] = trio.sleep_forever
            options["on_timeout"] = handle
        case "on_error":
            steps["function"] = fail
            options["on_error"] = handle
        case "retry_on" | "retry_after":
            steps["function"] = fail
            options["retry"] = FixedDelay(2, 0.5, **{name: lambda error: odd(oddity)})
        case "retry_on_result":
            options["retry"] = FixedDelay(2, 0.5, retry_on_result=for_odd(lambda value: False))
        case "backoff":
            steps["function"] = fail
            options["retry"] = Own(2, oddity=oddity)
        case "flatten iterable" | "flatten iterator":
            iterable = (OddIterable if name == "flatten iterable" else OddIterator)(oddity)

            async def answer() -> Any:
                return iterable

            steps["function"] = answer
            options["flatten"] = True
        case "source":
            options["source"] = OddSource(oddity)
        case "async source":
            options["source"] = async_source(oddity)
        case "timestamp":
            options["source"] = assign_watermarks(
                range(NUMBER), timestamp=for_odd(lambda value: value), max_out_of_orderness=1
            )
        case _:
            observer = Observer()
            setattr(observer, name, lambda *_: odd(oddity))
            options["observer"] = observer
    if mode == "keyed":
        options.setdefault("key", lambda value: value % 3 if isinstance(value, int) else 0)
    return options, steps, gates


async def run(name: str, oddity: Any, group: int | None, mode: str) -> None:
    options, steps, gates = case(name, oddity, group, mode)
    kind = KnowingFunction if name == "known" else Function
    function = kind(steps, group, flatten=options.get("flatten", False))
    options = {"on_error": "dead_letter", "timeout": 10.0, "capacity": 4, "group": group, "mode": mode, **options}
    before = trio.lowlevel.current_statistics().tasks_living
    operator = AsyncWaitOperator(function, **options)
    received: list[Any] = []
    with trio.move_on_after(LONG) as limit:
        try:
            async with operator:
                async for each in operator.output:
                    if not isinstance(each, Watermark):
                        received.append(each)  # noqa: PERF401 - those before an error count
                async for letter in operator.output.dead_letters:
                    received.append(letter)  # noqa: PERF401 - as above
        except BaseException as error:
            if isinstance(error, trio.Cancelled):
                raise
    assert not limit.cancelled_caught, "it hangs"
    assert trio.lowlevel.current_statistics().tasks_living == before
    statistics = operator.statistics()
    assert (statistics.running, function.running) == (0, 0)
    assert all(getattr(gate, "_running", 0) == 0 for gate in gates)
    snapshot = operator.snapshot()
    left = [each for each in snapshot.elements if not isinstance(each.element, Watermark)]
    assert len(received) + len(left) == snapshot.taken
    values = [each.value if isinstance(each, StreamRecord) else each for each in received]
    plain = [each for each in values if isinstance(each, int) and 0 <= each < NUMBER]
    assert len(plain) == len(set(plain)), "twice"


CALLBACKS = [
    "function",
    "unwinding",
    "key",
    "weight",
    "known",
    "on_timeout",
    "on_error",
    "retry_on",
    "retry_after",
    "retry_on_result",
    "backoff",
    "flatten iterable",
    "flatten iterator",
    "source",
    "async source",
    "timestamp",
    *HOOKS,
]
EVERY = [(mode, group) for mode in ("ordered", "unordered", "keyed") for group in (None, 3)]
SHORT = [("ordered", None), ("keyed", 3)]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(("mode", "group"), thorough_except(SHORT, EVERY))
@pytest.mark.parametrize("name", CALLBACKS)
def test_an_odd_callback_neither_hangs_nor_leaks(name: str, group: int | None, mode: str) -> None:
    for oddity in ERRORS if name in HOOKS else [*VALUES, *ERRORS]:  # the operator ignores what a hook returns
        try:
            trio.run(run, name, oddity, group, mode, clock=MockClock(autojump_threshold=0))
        except BaseException as error:
            error.add_note(f"with {oddity!r:.80}")
            raise
