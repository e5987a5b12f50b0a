"""OpenTelemetry: one span per invocation, closed however the invocation ends, its attributes, events and metrics."""

from __future__ import annotations

import math
import pickle
import subprocess
import sys
from typing import Any

import pytest
import trio
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from trio.testing import MockClock

from tests.libraries.telemetry import OUTCOME, Backend, assert_nothing_left, attributes_of, run
from tests.plain_gates import Refusing
from trio_asyncio_io import AsyncFunction, FixedDelay, ordered_wait
from trio_asyncio_io.opentelemetry import OpenTelemetryObserver
from trio_asyncio_io.testing import Scripted, Step, fails_first

OPERATOR = {"trio_asyncio_io.operator": "lookup"}


# Runs in another process, with the pickled observer on standard input
ELSEWHERE = """
import pickle, sys, trio
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from trio_asyncio_io import ordered_wait
from trio_asyncio_io.testing import Scripted

reader, exporter = InMemoryMetricReader(), InMemorySpanExporter()
metrics.set_meter_provider(MeterProvider([reader]))
trace.set_tracer_provider(TracerProvider())
trace.get_tracer_provider().add_span_processor(SimpleSpanProcessor(exporter))
observer = pickle.load(sys.stdin.buffer)

async def main():
    async with ordered_wait("ab", Scripted(), timeout=5.0, observer=observer) as results:
        async for _ in results:
            pass

trio.run(main)
found = reader.get_metrics_data().resource_metrics[0].scope_metrics[0].metrics
numbers = {metric.name: metric.data.data_points[0] for metric in found}
spans = [(span.name, span.attributes["tier"]) for span in exporter.get_finished_spans()]
print(numbers["trio_asyncio_io.invocations"].value, spans)
"""


async def test_a_completed_invocation_is_a_span(async_wait: Any, backend: Backend, autojump_clock: MockClock) -> None:
    observer = backend.observer()
    await run(async_wait("ab", Scripted(default=Step(1.0)), timeout=5.0, observer=observer))
    spans = sorted(backend.spans(), key=lambda span: attributes_of(span)["sequence"])
    assert [attributes_of(span) for span in spans] == [
        {"operator": "lookup", "sequence": sequence, "outcome": "completed", "attempts": 1} for sequence in (0, 1)
    ]
    assert {(span.kind, span.status.status_code) for span in spans} == {
        (trace.SpanKind.INTERNAL, trace.StatusCode.UNSET)
    }
    assert_nothing_left(backend)


async def test_spans_of_the_function_are_children_of_the_invocations_span(
    async_wait: Any, backend: Backend, autojump_clock: MockClock
) -> None:
    async def function(value: str) -> str:
        with backend.tracer.start_as_current_span("request", attributes={"value": value}):
            await trio.sleep(1.0)
        return value

    observer = backend.observer()
    await run(async_wait("abc", function, capacity=2, timeout=5.0, observer=observer))
    parents = {span.context.span_id: attributes_of(span)["sequence"] for span in backend.spans()}
    values = {parents[span.parent.span_id]: span.attributes["value"] for span in backend.spans("request")}
    assert values == {0: "a", 1: "b", 2: "c"}


async def test_a_span_is_a_child_of_the_span_around_the_block(
    async_wait: Any, backend: Backend, autojump_clock: MockClock
) -> None:
    observer = backend.observer()
    with backend.tracer.start_as_current_span("job"):
        await run(async_wait("aa", Scripted(default=Step(1.0)), capacity=1, timeout=5.0, observer=observer))
        assert trace.get_current_span().name == "job"
    assert [span.parent.span_id for span in backend.spans()] == [backend.span("job").context.span_id] * 2


async def test_spans_of_a_call_for_a_group_are_children_of_the_span_around_the_block(
    async_wait: Any, backend: Backend, autojump_clock: MockClock
) -> None:
    async def function(values: list[str]) -> list[str]:
        with backend.tracer.start_as_current_span("request"):
            await trio.sleep(1.0)
        return values

    with backend.tracer.start_as_current_span("job"):
        await run(async_wait("abc", function, capacity=1, group=2, timeout=5.0, observer=backend.observer()))
    parents = {span.parent.span_id for name in ("lookup", "request") for span in backend.spans(name)}
    assert parents == {backend.span("job").context.span_id}
    assert len(backend.spans("request")) == 2


async def test_each_failed_attempt_is_an_event(async_wait: Any, backend: Backend, autojump_clock: MockClock) -> None:
    observer = backend.observer()
    function = Scripted({"a": fails_first(2, OSError("busy"), then=Step(1.0))})
    await run(async_wait("a", function, timeout=9.0, retry=FixedDelay(5, 2.0), observer=observer))
    span = backend.span()
    assert attributes_of(span)["attempts"] == 3
    assert span.status.status_code is trace.StatusCode.UNSET
    # The same exception object is raised twice
    events = [(event.name, event.attributes["trio_asyncio_io.attempt"]) for event in span.events]
    assert events == [("exception", 1), ("exception", 2)]
    assert {event.attributes["exception.message"] for event in span.events} == {"busy"}
    assert backend.numbers("attempts") == {"": 3}


async def test_an_invalid_result_is_an_event(async_wait: Any, backend: Backend, autojump_clock: MockClock) -> None:
    function = Scripted(default=Step(result=5))
    await run(async_wait("a", function, timeout=9.0, flatten=True, on_error="skip", observer=backend.observer()))
    assert [event.attributes["exception.type"] for event in backend.span().events] == ["TypeError"]


async def test_nested_operators_can_share_an_observer(backend: Backend, autojump_clock: MockClock) -> None:
    class Outer(AsyncFunction[str, str]):
        async def invoke(self, value: str) -> str:
            never = Scripted(default=Step(math.inf))
            await run(ordered_wait([value * 2], never, timeout=1.0, on_error="skip", observer=observer))
            return value

    observer = backend.observer()
    await run(ordered_wait("a", Outer(), timeout=5.0, observer=observer))
    inner, outer = backend.spans()
    assert attributes_of(inner)["outcome"] == "timed_out"
    assert inner.parent.span_id == outer.context.span_id
    assert attributes_of(outer)["outcome"] == "completed"
    assert_nothing_left(backend)


async def test_spans_and_metrics_contain_no_values_of_elements(
    async_wait: Any, backend: Backend, autojump_clock: MockClock
) -> None:
    function = Scripted({"secret": Step(math.inf)})
    retry = FixedDelay(1, 0.0, attempt_timeout=1.0)
    await run(async_wait(["secret"], function, timeout=9.0, retry=retry, on_error="skip", observer=backend.observer()))
    await run(async_wait(["secret"], function, timeout=0.5, on_error="skip", observer=backend.observer()))
    assert len(backend.spans()) == 2
    assert all("secret" not in span.to_json() for span in backend.spans())
    event = backend.spans()[0].events[0]
    assert event.attributes["exception.type"] == "trio_asyncio_io.AttemptTimeoutError"
    assert event.attributes["exception.message"] == "no result within its attempt_timeout of 1 s"


class UnprintableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


async def test_an_exception_whose_str_raises_is_an_event_and_the_observer_continues(
    async_wait: Any, backend: Backend, autojump_clock: MockClock
) -> None:
    observer = backend.observer()
    await run(
        async_wait("ab", Scripted({"a": Step(error=UnprintableError)}), timeout=5.0, on_error="skip", observer=observer)
    )
    [event] = [event for span in backend.spans() for event in span.events]
    assert event.attributes is not None
    assert event.attributes["exception.message"] == "<UnprintableError whose str raised RuntimeError>"
    assert event.attributes["exception.type"] == f"{__name__}.UnprintableError"
    assert event.attributes["trio_asyncio_io.attempt"] == 1
    assert backend.numbers("invocations") == {"failed": 1, "completed": 1}
    assert_nothing_left(backend)


async def test_without_spans_the_metrics_remain_and_the_outer_span_is_current(
    async_wait: Any, backend: Backend, autojump_clock: MockClock
) -> None:
    async def function(value: str) -> str:
        with backend.tracer.start_as_current_span("request"):
            return value

    observer = backend.observer(spans=False)
    with backend.tracer.start_as_current_span("job"):
        await run(async_wait("a", function, timeout=5.0, observer=observer))
    assert backend.spans() == []
    assert backend.span("request").parent.span_id == backend.span("job").context.span_id
    assert backend.numbers("invocations") == {"completed": 1}
    assert_nothing_left(backend)


async def test_durations_and_buckets_are_seconds(async_wait: Any, backend: Backend, autojump_clock: MockClock) -> None:
    function = Scripted({"a": Step(0.02), "b": Step(4.0)})
    await run(async_wait("ab", function, timeout=5.0, observer=backend.observer()))
    point = backend.points("invocation.duration")["completed"]
    assert (point.count, point.min, point.max) == (2, 0.02, 4.0)
    filled = [bound for bound, count in zip(point.explicit_bounds, point.bucket_counts, strict=False) if count]
    assert filled == [0.025, 5.0]


async def test_additional_attributes_are_on_spans_and_metrics(
    async_wait: Any, backend: Backend, autojump_clock: MockClock
) -> None:
    observer = backend.observer(attributes={"tier": "gold"})
    await run(async_wait("a", Scripted(), timeout=5.0, observer=observer))
    assert backend.span().attributes["tier"] == "gold"
    assert backend.points("attempts")[""].attributes == {**OPERATOR, "tier": "gold"}
    assert backend.points("invocations")["completed"].attributes == {**OPERATOR, "tier": "gold", OUTCOME: "completed"}


async def test_the_observer_works_without_an_sdk(async_wait: Any, autojump_clock: MockClock) -> None:
    observer = OpenTelemetryObserver("lookup")
    async with async_wait("abc", Scripted(), timeout=5.0, observer=observer) as results:
        assert sorted([result async for result in results]) == ["a", "b", "c"]


@pytest.mark.processes
def test_an_unpickled_observer_uses_the_providers_of_its_process() -> None:
    sent = pickle.dumps(OpenTelemetryObserver("lookup", attributes={"tier": "gold"}))
    ran = subprocess.run([sys.executable, "-c", ELSEWHERE], input=sent, capture_output=True, check=False)
    assert ran.stdout.decode().strip() == "2 [('lookup', 'gold'), ('lookup', 'gold')]", ran.stderr.decode()


@pytest.mark.parametrize(
    ("error", "name"),
    [(ZeroDivisionError("no"), "ZeroDivisionError"), (trio.ClosedResourceError(), "trio.ClosedResourceError")],
    ids=["builtin", "of a package"],
)
async def test_a_failed_invocation_has_the_status_error_and_one_type_everywhere(
    async_wait: Any, backend: Backend, autojump_clock: MockClock, error: Exception, name: str
) -> None:
    observer = backend.observer()
    await run(
        async_wait("a", Scripted(default=Step(1.0, error=error)), timeout=9.0, on_error="skip", observer=observer)
    )
    span = backend.span()
    assert (span.status.status_code, span.status.description) == (trace.StatusCode.ERROR, name)
    assert attributes_of(span)["outcome"] == "failed"
    assert attributes_of(span)["error.type"] == name
    assert [event.attributes["exception.type"] for event in span.events] == [name]
    assert backend.points("invocations")["failed"].attributes["error.type"] == name
    assert backend.numbers("invocations") == {"failed": 1}
    assert_nothing_left(backend)


async def test_a_refused_record_has_its_exception(async_wait: Any, backend: Backend, autojump_clock: MockClock) -> None:
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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": 3}, "name must be a string, got 3"),
        ({"name": ""}, "name must not be empty, got ''"),
        ({"name": "lookup", "spans": "no"}, "spans must be True or False, got 'no'"),
    ],
)
def test_invalid_arguments_are_refused(arguments: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        OpenTelemetryObserver(**arguments)
