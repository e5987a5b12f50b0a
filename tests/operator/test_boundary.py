"""Ctrl-C never interrupts the operator between two of its steps, and always reaches the user's code."""

from __future__ import annotations

import gc
import math
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
import trio

from tests.interrupting import Interruption, Lines, default_sigint
from tests.naming import told
from trio_asyncio_io import AsyncFunction, AsyncWaitOperator, FixedDelay, Observer
from trio_asyncio_io.testing import Recorder, Scripted, Step, fails_first

# An interrupt between a call and its `await` drops the coroutine, as it does in any code
pytestmark = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")

ELEMENTS = list(range(10))
INJECTIONS = 40

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
        gc.collect()  # what was dropped warns here, and not in the next test


def operator_of(mode: str, variant: str, **options: Any) -> AsyncWaitOperator[int, int]:
    function: Scripted[int] = Scripted(FAILURES if variant in {"retried", "skipped"} else {})
    key = (lambda value: value % 3) if mode == "keyed" else None
    return AsyncWaitOperator(
        function, mode=mode, key=key, timeout=5.0, capacity=3, buffer=4, **OPTIONS[variant], **options
    )


async def outputs_of(operator: AsyncWaitOperator[int, int], out: list[int], elements: Iterator[int] | None) -> None:
    """Receive everything; the elements that were not given as a source are put."""

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
) -> tuple[Any, Lines]:
    """What a run received that SIGINT ended, and the lines that it ran."""
    out: list[int] = []
    lines = Lines(interrupt_at)

    async def main() -> None:
        with lines.traced():
            await outputs_of(operator, out, elements)

    try:
        trio.run(main)
    except* KeyboardInterrupt:
        assert interrupt_at
    return out, lines


class Source:
    """Iterators over the same elements. Nothing interrupts them: what they have given is gone from them."""

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
    ("variant", "is_async"), [*((variant, False) for variant in OPTIONS), ("plain", True)], ids=told
)
def test_no_interrupt_loses_or_doubles_an_element(mode: str, variant: str, is_async: bool) -> None:
    _, lines = interrupted_run(0, operator_of(mode, variant, source=Source(is_async).read()))
    for interrupt_at in range(1, lines.count, max(1, lines.count // INJECTIONS)):
        source = Source(is_async)
        operator = operator_of(mode, variant, source=source.read())
        out, _ = interrupted_run(interrupt_at, operator)
        assert operator.statistics().running == 0
        restored = operator_of(mode, variant, source=source.read(), restore=operator.snapshot())
        rest: list[int] = []
        trio.run(outputs_of, restored, rest, None)
        # A failure is scripted for the first call only, which may have been that of the interrupted run
        received = [each for each in out + rest if each in expected(variant)]
        assert (received if mode == "ordered" else sorted(received)) == expected(variant), interrupt_at


def test_an_interrupted_put_has_accepted_its_element_or_has_not(mode: str) -> None:
    _, lines = interrupted_run(0, operator_of(mode, "plain"), iter(ELEMENTS))
    for interrupt_at in range(1, lines.count, max(1, lines.count // INJECTIONS)):
        operator = operator_of(mode, "plain")
        elements = iter(ELEMENTS)
        out, _ = interrupted_run(interrupt_at, operator, elements)
        held = [each.element for each in operator.snapshot().elements]
        left = list(elements)
        taken = ELEMENTS[: len(ELEMENTS) - len(left)]
        assert sorted(out + held) in (taken, taken[:-1]), interrupt_at


# The user's code.


async def at_once(value: Any) -> Any:
    return value


def interrupting(interruption: Interruption) -> Callable[..., Any]:
    async def call(*arguments: Any) -> Any:
        interruption.interrupt()

    return call


def in_the_function(interruption: Interruption) -> dict[str, Any]:
    return {"function": interrupting(interruption)}


def in_a_function_that_returns_an_awaitable(interruption: Interruption) -> dict[str, Any]:
    return {"function": lambda value: interruption.interrupt() or at_once(value)}


def in_a_retried_function(interruption: Interruption) -> dict[str, Any]:
    return {
        "function": interrupting(interruption),
        "retry": FixedDelay(1, 0.0, attempt_timeout=1.0),
        "observer": Observer(),
    }


def in_the_source(interruption: Interruption) -> dict[str, Any]:
    def source() -> Iterator[int]:
        yield 1
        interruption.interrupt()

    return {"source": source()}


def in_an_async_source(interruption: Interruption) -> dict[str, Any]:
    class Striking(_AsyncIterator):
        async def __anext__(self) -> int:
            interruption.interrupt()
            return 1

    return {"source": Striking(iter([]))}


def in_the_key(interruption: Interruption) -> dict[str, Any]:
    return {"mode": "keyed", "key": lambda value: interruption.interrupt()}


def in_on_timeout(interruption: Interruption) -> dict[str, Any]:
    return {"function": Scripted(default=Step(math.inf)), "timeout": 0.0, "on_timeout": interrupting(interruption)}


def in_on_error(interruption: Interruption) -> dict[str, Any]:
    return {"function": Scripted(default=Step(error=OSError)), "on_error": interrupting(interruption)}


def in_open(interruption: Interruption) -> dict[str, Any]:
    class Opened(AsyncFunction[Any, Any]):
        open = interrupting(interruption)
        invoke = at_once

    return {"function": Opened()}


def in_close(interruption: Interruption) -> dict[str, Any]:
    class Closed(AsyncFunction[Any, Any]):
        invoke = at_once
        close = interrupting(interruption)

    return {"function": Closed()}


def in_an_iterable_result(interruption: Interruption) -> dict[str, Any]:
    async def rows(value: Any) -> Iterator[int]:
        return (interruption.interrupt() for _ in range(3))

    return {"function": rows, "flatten": True}


def in_retry_on(interruption: Interruption) -> dict[str, Any]:
    return {
        "function": Scripted(default=Step(error=OSError)),
        "retry": FixedDelay(1, 0.0, retry_on=lambda error: interruption.interrupt()),
    }


def in_retry_on_result(interruption: Interruption) -> dict[str, Any]:
    return {"retry": FixedDelay(1, 0.0, retry_on_result=lambda result: interruption.interrupt())}


def in_retry_after(interruption: Interruption) -> dict[str, Any]:
    return {
        "function": Scripted(default=Step(error=OSError)),
        "retry": FixedDelay(1, 0.0, retry_after=lambda error: interruption.interrupt()),
    }


@pytest.mark.parametrize(
    "place",
    [
        in_the_function,
        in_a_function_that_returns_an_awaitable,
        in_a_retried_function,
        in_the_source,
        in_an_async_source,
        in_the_key,
        in_on_timeout,
        in_on_error,
        in_open,
        in_close,
        in_an_iterable_result,
        in_retry_on,
        in_retry_on_result,
        in_retry_after,
    ],
    ids=lambda place: place.__name__,
)
def test_an_interrupt_reaches_user_code_that_never_comes_to_a_checkpoint(place: Any) -> None:
    interruption = Interruption()
    options = {"function": at_once, "source": iter([1, 2, 3]), "timeout": 5.0, **place(interruption)}
    recorder = Recorder(options.pop("function"))

    async def main() -> None:
        async with AsyncWaitOperator(recorder, **options) as operator:
            async for _ in operator.output:
                pass

    with pytest.raises(KeyboardInterrupt):
        trio.run(main)
    assert interruption.was_interrupted
    assert recorder.running == 0


def test_an_element_whose_key_was_interrupted_is_in_the_snapshot() -> None:
    interruption = Interruption()

    def key(value: int) -> int:
        if value == 2:
            interruption.interrupt()
        return value

    operator = AsyncWaitOperator(at_once, source=iter([1, 2, 3]), mode="keyed", key=key, timeout=5.0)

    async def main() -> None:
        async with operator:
            await trio.sleep_forever()

    with pytest.raises(KeyboardInterrupt):
        trio.run(main)
    assert [each.element for each in operator.snapshot().elements] == [1, 2]
    assert operator.snapshot().taken == 2
