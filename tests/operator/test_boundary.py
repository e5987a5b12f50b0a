"""Ctrl-C never interrupts the operator between two steps, and always reaches the user's code."""

from __future__ import annotations

import gc
import math
import signal
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import trio

from tests.interrupting import Interrupter, LineCounter, default_sigint
from tests.support import stable_id
from trio_asyncio_io import AsyncFunction, AsyncWaitOperator, FixedDelay, Observer, Statistics, Verdict
from trio_asyncio_io.gates import RateLimit
from trio_asyncio_io.policies import cached, gated, hedged, single_flight
from trio_asyncio_io.testing import Recorder, Scripted, Step, fails_first

# An interrupt between a call and its `await` drops the coroutine, as it does in any code
pytestmark = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")

ELEMENTS = list(range(10))
INJECTIONS = 15

OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "observed": {"observer": Observer()},
    "retried": {"retry": FixedDelay(2, 0.0, attempt_timeout=10.0)},
    "skipped": {"on_error": "skip"},
}
FAILURES = {2: fails_first(1, OSError()), 5: fails_first(1, OSError())}


def expected(variant: str) -> list[int]:
    return [each for each in ELEMENTS if variant != "skipped" or each not in FAILURES]


@pytest.fixture(autouse=True)
def _default_sigint() -> Iterator[None]:
    with default_sigint():
        yield
        gc.collect()  # a dropped coroutine warns here and not in the next test


def operator_of(mode: str, variant: str, **options: Any) -> AsyncWaitOperator[int, int]:
    function: Scripted[int] = Scripted(FAILURES if variant in {"retried", "skipped"} else {})
    key = (lambda value: value % 3) if mode == "keyed" else None
    return AsyncWaitOperator(
        function, mode=mode, key=key, timeout=5.0, capacity=3, buffer=4, **OPTIONS[variant], **options
    )


async def outputs_of(operator: AsyncWaitOperator[int, int], out: list[int], elements: Iterator[int] | None) -> None:
    """Receive all outputs; put the elements if the operator has no source."""

    async def put_all() -> None:
        for element in elements or ():
            await operator.put(element)
        operator.end_input()

    async with operator, trio.open_nursery() as nursery:
        if elements is not None:
            nursery.start_soon(put_all)
        async for output in operator.output:
            out.append(output)  # noqa: PERF401 - what was received before the interrupt counts


def interrupted_run(
    interrupt_at: int, operator: AsyncWaitOperator[int, int], elements: Any = None
) -> tuple[Any, LineCounter]:
    """The outputs of a run that SIGINT ended, and its line counter."""
    out: list[int] = []
    lines = LineCounter(interrupt_at)

    async def main() -> None:
        with lines.traced():
            await outputs_of(operator, out, elements)

    try:
        trio.run(main)
    except* KeyboardInterrupt:
        assert interrupt_at
    return out, lines


class Source:
    """Iterators that share their elements. They are never interrupted, so a returned element is gone."""

    def __init__(self, is_async: bool) -> None:
        self.left = iter(ELEMENTS)
        self.is_async = is_async

    def read(self) -> Any:
        return _AsyncIterator(self.left) if self.is_async else self.left


class _AsyncIterator:
    def __init__(self, left: Iterator[int]) -> None:
        self.left = left

    def __aiter__(self) -> AsyncIterator[int]:
        return self

    async def __anext__(self) -> int:
        await trio.lowlevel.checkpoint()
        for each in self.left:
            return each
        raise StopAsyncIteration


@pytest.mark.parametrize(
    ("variant", "is_async"),
    [
        pytest.param(variant, is_async, marks=() if variant == "plain" else pytest.mark.slow)
        for variant, is_async in [*((variant, False) for variant in OPTIONS), ("plain", True)]
    ],
    ids=stable_id,
)
def test_no_interrupt_loses_or_duplicates_an_element(mode: str, variant: str, is_async: bool) -> None:
    _, lines = interrupted_run(0, operator_of(mode, variant, source=Source(is_async).read()))
    for interrupt_at in range(1, lines.count, max(1, lines.count // INJECTIONS)):
        source = Source(is_async)
        operator = operator_of(mode, variant, source=source.read())
        out, _ = interrupted_run(interrupt_at, operator)
        assert operator.statistics().running == 0
        restored = operator_of(mode, variant, source=source.read(), restore=operator.snapshot())
        rest: list[int] = []
        trio.run(outputs_of, restored, rest, None)
        # Only the first call fails, and that may have been a call of the interrupted run
        received = [each for each in out + rest if each in expected(variant)]
        assert (received if mode == "ordered" else sorted(received)) == expected(variant), interrupt_at


def test_an_interrupted_put_accepts_its_element_once_or_not_at_all(mode: str) -> None:
    _, lines = interrupted_run(0, operator_of(mode, "plain"), iter(ELEMENTS))
    for interrupt_at in range(1, lines.count, max(1, lines.count // INJECTIONS)):
        operator = operator_of(mode, "plain")
        elements = iter(ELEMENTS)
        out, _ = interrupted_run(interrupt_at, operator, elements)
        held = [each.element for each in operator.snapshot().elements]
        left = list(elements)
        taken = ELEMENTS[: len(ELEMENTS) - len(left)]
        assert sorted(out + held) in (taken, taken[:-1]), interrupt_at


# The user's code


async def at_once(value: Any) -> Any:
    return value


def places_of(interrupter: Interrupter) -> dict[str, dict[str, Any]]:
    """Place in the user's code -> the options with which it is interrupted there."""

    def interrupt(*_: Any) -> Any:
        interrupter.interrupt()

    async def call(*_: Any) -> Any:
        interrupter.interrupt()

    def source() -> Iterator[int]:
        yield 1
        interrupter.interrupt()

    class Source(_AsyncIterator):
        __anext__ = call

    class Opened(AsyncFunction[Any, Any]):
        open = call
        invoke = at_once

    class Closed(AsyncFunction[Any, Any]):
        invoke = at_once
        close = call

    async def rows(value: Any) -> Iterator[int]:
        return (interrupter.interrupt() for _ in range(3))

    in_policies = cached(single_flight(gated(hedged(call, after=1.0), RateLimit(10.0))), ttl=60.0)
    fails = Scripted[Any](default=Step(error=OSError))
    return {
        "the function": {"function": call},
        "a function that returns an awaitable": {"function": lambda value: interrupt() or at_once(value)},
        "a retried function": {
            "function": call,
            "retry": FixedDelay(1, 0.0, attempt_timeout=1.0),
            "observer": Observer(),
        },
        "a function in policies": {"function": in_policies},
        "the key of a policy": {"function": cached(at_once, key=interrupt)},
        "is_negative": {"function": cached(at_once, negative_ttl=1.0, is_negative=interrupt)},
        "open": {"function": Opened()},
        "open below a policy": {"function": cached(Opened())},
        "close": {"function": Closed()},
        "the source": {"source": source()},
        "an async source": {"source": Source(iter([]))},
        "the key": {"mode": "keyed", "key": interrupt},
        "on_timeout": {"function": Scripted(default=Step(math.inf)), "timeout": 0.0, "on_timeout": call},
        "on_error": {"function": fails, "on_error": call},
        "an iterable result": {"function": rows, "flatten": True},
        "retry_on": {"function": fails, "retry": FixedDelay(1, 0.0, retry_on=interrupt)},
        "retry_on_result": {"retry": FixedDelay(1, 0.0, retry_on_result=interrupt)},
        "retry_after": {"function": fails, "retry": FixedDelay(1, 0.0, retry_after=interrupt)},
    }


@pytest.mark.parametrize("place", places_of(Interrupter()))
def test_an_interrupt_reaches_user_code_without_checkpoints(place: str) -> None:
    interrupter = Interrupter()
    options = {"function": at_once, "source": iter([1, 2, 3]), "timeout": 5.0, **places_of(interrupter)[place]}
    recorder = Recorder(options.pop("function"))

    async def main() -> None:
        async with AsyncWaitOperator(recorder, **options) as operator:
            async for _ in operator.output:
                pass

    with pytest.raises(KeyboardInterrupt):
        trio.run(main)
    assert interrupter.was_interrupted
    assert recorder.running == 0


def test_an_element_whose_key_function_was_interrupted_is_in_the_snapshot() -> None:
    interrupter = Interrupter()

    def key(value: int) -> int:
        if value == 2:
            interrupter.interrupt()
        return value

    operator = AsyncWaitOperator(at_once, source=iter([1, 2, 3]), mode="keyed", key=key, timeout=5.0)

    async def main() -> None:
        async with operator:
            await trio.sleep_forever()

    with pytest.raises(KeyboardInterrupt):
        trio.run(main)
    assert [each.element for each in operator.snapshot().elements] == [1, 2]
    assert operator.snapshot().taken == 2


def test_an_interrupt_that_is_pending_at_the_end_does_not_interrupt_close() -> None:
    """The function is closed, and then the interrupt leaves the block."""
    events: list[str] = []

    class Interrupted(Observer):
        def run_ended(self, statistics: Statistics, verdict: Verdict) -> None:
            signal.raise_signal(signal.SIGINT)
            events.append("interrupted")

    class Opened(AsyncFunction[int, int]):
        async def invoke(self, value: int) -> int:
            return value

        async def close(self) -> None:
            await trio.sleep(0.0)
            events.append("closed")

    async def main() -> None:
        async with AsyncWaitOperator(single_flight(Opened()), timeout=5.0, observer=Interrupted()):
            pass

    with pytest.raises(KeyboardInterrupt):
        trio.run(main)
    assert events == ["interrupted", "closed"]
