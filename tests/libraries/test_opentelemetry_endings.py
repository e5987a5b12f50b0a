"""OpenTelemetry: however an invocation ends, its outcome is recorded and no span stays open."""

from __future__ import annotations

import math
from typing import Any

import pytest
import trio
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from trio.testing import MockClock

from tests.libraries.telemetry import Backend, assert_nothing_left, attributes_of, run
from trio_asyncio_io import FixedDelay
from trio_asyncio_io.gates import Gate, RefusedError
from trio_asyncio_io.testing import Scripted, Step


async def test_a_failed_invocation_has_the_status_error(
    async_wait: Any, backend: Backend, autojump_clock: MockClock
) -> None:
    observer = backend.observer()
    function = Scripted(default=Step(1.0, error=ZeroDivisionError("no")))
    await run(async_wait("a", function, timeout=9.0, on_error="skip", observer=observer))
    span = backend.span()
    assert (span.status.status_code, span.status.description) == (trace.StatusCode.ERROR, "ZeroDivisionError")
    assert attributes_of(span)["outcome"] == "failed"
    assert attributes_of(span)["error.type"] == "ZeroDivisionError"
    assert [event.attributes["exception.type"] for event in span.events] == ["ZeroDivisionError"]
    assert backend.numbers("invocations") == {"failed": 1}
    assert_nothing_left(backend)


async def test_a_refused_record_has_its_exception(async_wait: Any, backend: Backend, autojump_clock: MockClock) -> None:
    class Refusing(Gate):
        def delay(self, now: float, weight: float) -> float:
            raise RefusedError("closed")

    observer = backend.observer()
    await run(async_wait("a", Scripted(), timeout=3.0, on_error="skip", observer=observer, gate=Refusing()))
    [event] = backend.span().events
    assert event.attributes["exception.message"] == "closed"
    assert_nothing_left(backend)


async def test_a_span_lasts_over_backoffs_during_which_other_records_run(
    async_wait: Any, backend: Backend, autojump_clock: MockClock
) -> None:
    """The attempts of one record are made by different tasks."""
    observer = backend.observer()
    script = Scripted({"a": [Step(1.0, error=OSError), Step(1.0)]}, default=Step(3.0))
    retry = FixedDelay(1, 1.5)
    await run(async_wait("abc", script, timeout=9.0, capacity=2, retry=retry, observer=observer))
    spans = {attributes_of(span)["sequence"]: span for span in backend.spans()}
    assert len(spans) == 3
    assert attributes_of(spans[0])["attempts"] == 2
    assert [event.name for event in spans[0].events] == ["exception"]
    assert not spans[1].events
    assert not spans[2].events
    assert_nothing_left(backend)


async def test_a_timeout_has_the_status_error_and_counts_once(
    async_wait: Any, backend: Backend, autojump_clock: MockClock
) -> None:
    observer = backend.observer()
    await run(async_wait("a", Scripted(default=Step(math.inf)), timeout=3.0, on_error="skip", observer=observer))
    span = backend.span()
    assert (span.status.status_code, span.status.description) == (trace.StatusCode.ERROR, "timeout")
    assert attributes_of(span)["outcome"] == "timed_out"
    assert attributes_of(span)["error.type"] == "timeout"
    assert backend.numbers("invocations") == {"timed_out": 1}
    assert_nothing_left(backend)


async def test_a_timeout_with_a_result_of_on_timeout_is_still_a_timeout(
    async_wait: Any, backend: Backend, autojump_clock: MockClock
) -> None:
    observer = backend.observer()
    await run(async_wait("a", Scripted(default=Step(math.inf)), timeout=3.0, on_timeout=Scripted(), observer=observer))
    assert backend.numbers("invocations") == {"timed_out": 1}
    assert_nothing_left(backend)


async def test_a_timeout_whose_on_timeout_is_cancelled_leaves_no_span(
    async_wait: Any, backend: Backend, autojump_clock: MockClock
) -> None:
    observer = backend.observer()
    never = Scripted(default=Step(math.inf))
    async with async_wait("a", never, timeout=3.0, on_timeout=never, observer=observer):
        await trio.sleep(4.0)
    assert backend.numbers("invocations") == {"timed_out": 1}
    assert_nothing_left(backend)


async def test_the_next_span_of_a_worker_after_a_timeout_has_no_parent(
    async_wait: Any, backend: Backend, autojump_clock: MockClock
) -> None:
    function = Scripted({"a": Step(math.inf)}, default=Step(1.0))
    observer = backend.observer()
    await run(async_wait("ab", function, capacity=1, timeout=3.0, on_timeout=Scripted(), observer=observer))
    assert [(attributes_of(span)["sequence"], span.parent) for span in backend.spans()] == [(0, None), (1, None)]


async def test_an_invocation_that_stops_with_the_operator_is_cancelled(
    async_wait: Any, backend: Backend, autojump_clock: MockClock
) -> None:
    observer = backend.observer()
    async with async_wait("abcd", Scripted(default=Step(math.inf)), capacity=3, timeout=math.inf, observer=observer):
        await trio.sleep(4.0)
        assert backend.numbers("active_invocations") == {"": 3}
    assert [attributes_of(span)["outcome"] for span in backend.spans()] == ["cancelled"] * 3
    assert {span.status.status_code for span in backend.spans()} == {trace.StatusCode.UNSET}
    assert backend.numbers("invocations") == {"cancelled": 3}
    assert_nothing_left(backend)


async def test_a_failure_that_stops_the_operator_leaves_no_span(
    async_wait: Any, backend: Backend, autojump_clock: MockClock
) -> None:
    observer = backend.observer()
    function = Scripted({"b": Step(1.0, error=OSError("no"))}, default=Step(9.0))
    with pytest.raises(OSError, match="no"):
        await run(async_wait("abc", function, timeout=60.0, observer=observer))
    assert backend.numbers("invocations") == {"failed": 1, "cancelled": 2}
    assert_nothing_left(backend)


async def test_a_call_that_fails_while_the_operator_stops_leaves_no_span(
    async_wait: Any, backend: Backend, autojump_clock: MockClock
) -> None:
    async def function(value: str) -> str:
        try:
            await trio.sleep_forever()
        finally:
            raise OSError("while stopping")

    observer = backend.observer()
    with pytest.raises(OSError, match="while stopping"):
        async with async_wait("ab", function, timeout=60.0, observer=observer):
            await trio.sleep(1.0)
    assert backend.numbers("invocations") == {"failed": 2}
    assert_nothing_left(backend)


async def test_a_cancellation_from_outside_leaves_no_span(
    async_wait: Any, backend: Backend, autojump_clock: MockClock
) -> None:
    observer = backend.observer()
    with trio.move_on_after(2.0):
        await run(async_wait("abc", Scripted(default=Step(9.0)), timeout=60.0, observer=observer))
    assert backend.numbers("invocations") == {"cancelled": 3}
    assert_nothing_left(backend)


async def test_a_dead_letter_leaves_no_span(async_wait: Any, backend: Backend, autojump_clock: MockClock) -> None:
    observer = backend.observer()
    async with async_wait(
        "ab", Scripted({"a": Step(error=OSError)}), timeout=1.0, on_error="dead_letter", observer=observer
    ) as results:
        assert [result async for result in results] == ["b"]
        assert [dead_letter.element async for dead_letter in results.dead_letters] == ["a"]
    assert backend.numbers("invocations") == {"failed": 1, "completed": 1}
    assert_nothing_left(backend)


class FailsOnce(SpanProcessor):
    def __init__(self, step: str) -> None:
        self._step = step

    def on_start(self, span: Span, parent_context: Any = None) -> None:
        self._fail("start")

    def on_end(self, span: ReadableSpan) -> None:
        self._fail("end")

    def _fail(self, step: str) -> None:
        if step == self._step:
            self._step = ""
            raise RuntimeError("the exporter is down")


@pytest.mark.parametrize("step", ["start", "end"])
@pytest.mark.parametrize("error", [None, OSError("busy")], ids=["results", "failures"])
async def test_after_a_span_processor_raises_no_span_is_current(
    async_wait: Any, backend: Backend, autojump_clock: MockClock, step: str, error: Exception | None
) -> None:
    async def trace_current(value: int) -> int:
        await trio.sleep(1.0)
        current.append(trace.get_current_span().is_recording())
        if error is not None:
            raise error
        return value

    current: list[bool] = []
    observer = backend.observer()
    backend.tracers.add_span_processor(FailsOnce(step))
    await run(async_wait(range(20), trace_current, capacity=4, timeout=5.0, on_error="skip", observer=observer))
    assert current[4:] == [False] * 16
