"""Spans and metrics of an operator through OpenTelemetry's API. Needs the extra `opentelemetry`.

Attributes of spans and metrics; those marked * are on spans only:

    trio_asyncio_io.operator    the operator's name, which is also the spans' name
    trio_asyncio_io.outcome     "completed", "failed", "timed_out" or "cancelled"
    trio_asyncio_io.sequence *  the record's position in the operator's input, from 0
    trio_asyncio_io.attempts *  the number of attempts
    error.type                  the exception's class with its module, or "timeout"; only if it failed or timed out

    metric                                 kind             unit
    trio_asyncio_io.invocations            counter          {invocation}   ended, by outcome
    trio_asyncio_io.invocation.duration    histogram        s              by outcome
    trio_asyncio_io.attempts               counter          {attempt}      of invocations that have ended
    trio_asyncio_io.active_invocations     up-down counter  {invocation}   running now
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar, Token
from functools import partial
from typing import Any

from ._core.observer import Observer
from ._operator.errors import AttemptTimeoutError
from ._values.checks import check_bool, check_name
from ._values.exceptions import text_of

try:
    from opentelemetry import context, metrics, trace
    from opentelemetry.util.types import AttributeValue
except ImportError as error:
    message = "trio_asyncio_io.opentelemetry needs OpenTelemetry's API: in a clone, pip install '.[opentelemetry]'"
    raise ImportError(message) from error

__all__ = ["OpenTelemetryObserver"]

_SCOPE = "trio_asyncio_io"

# Seconds: the boundaries of the semantic conventions for requests, plus minutes. The SDK's defaults suit milliseconds
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 30.0, 60.0, 300.0)


class OpenTelemetryObserver(Observer):
    """An observer that creates a span for each invocation, and metrics.

    A span lasts from the start of the invocation to its end, retries and backoffs included. It is current while the
    function runs, so the spans of an instrumented client become its children. Each failed attempt adds an event with
    the exception. A timeout ends the span before `on_timeout` and `on_error` run.

    Spans have the kind INTERNAL, because the client's own spans have the kind CLIENT. The parent is the span that was
    current when the operator's block was entered. If you put elements yourself, it is the span that was current at the
    `put` which started the worker; so enter the block and put under the same span.

    With `group=`, several records share a call, so none of their spans is current in it. The spans of an instrumented
    client become children of the span that was current when the block was entered.

    Several operators may share an observer at the same time; they then share its name. An observer without providers
    of its own can be pickled, and uses the global providers of the process that unpickles it.

    Spans and metrics contain no values of elements. They do contain the messages of exceptions: if a service's errors
    quote the request, the spans' events do, too. The function may add attributes to its span:
    `opentelemetry.trace.get_current_span().set_attribute(...)`.

    Args:
        name: The operator's name, not empty: the name of the spans, and an attribute of the metrics. Use few, fixed
            names.
        tracer_provider: Creates the spans. None: the global provider.
        meter_provider: Creates the metrics. None: the global provider.
        attributes: Additional attributes of every span and metric.
        spans: Whether to create spans. False: metrics only.

    Raises:
        TypeError, ValueError: `name` or `spans` is invalid.

    Example:
        observer = OpenTelemetryObserver("weather lookup")
        async with ordered_wait(flights, lookup, timeout=5.0, observer=observer) as results:
            ...
    """

    def __init__(
        self,
        name: str,
        *,
        tracer_provider: trace.TracerProvider | None = None,
        meter_provider: metrics.MeterProvider | None = None,
        attributes: Mapping[str, AttributeValue] | None = None,
        spans: bool = True,
    ) -> None:
        self._name = check_name("name", name)
        self._create_copy = partial(
            type(self),
            name,
            tracer_provider=tracer_provider,
            meter_provider=meter_provider,
            attributes=attributes,
            spans=spans,
        )
        self._attributes: dict[str, AttributeValue] = {f"{_SCOPE}.operator": name, **(attributes or {})}
        self._tracer = trace.get_tracer(_SCOPE, tracer_provider=tracer_provider) if check_bool("spans", spans) else None
        self._meters = _Meters(metrics.get_meter(_SCOPE, meter_provider=meter_provider))

    def __reduce__(self) -> tuple[Callable[[], OpenTelemetryObserver], tuple[()]]:
        # Tracers and meters cannot leave their process
        return self._create_copy, ()

    def started(self, sequence: int, element: Any) -> None:
        self._meters.active.add(1, self._attributes)
        running = _Running(self)
        _RUNNING.set(running)
        if self._tracer is not None:
            attributes = {**self._attributes, f"{_SCOPE}.sequence": sequence}
            running.enter(self._tracer.start_span(self._name, attributes=attributes))

    def attempt_failed(self, sequence: int, element: Any, attempt: int, error: Exception) -> None:
        if (running := self._running()) is not None:
            running.record(error, attempt)

    def completed(self, sequence: int, element: Any, attempts: int, seconds: float) -> None:
        self._end("completed", attempts, seconds)

    def timed_out(self, sequence: int, element: Any, attempts: int, seconds: float) -> None:
        self._end("timed_out", attempts, seconds, "timeout")

    def failed(self, sequence: int, element: Any, attempts: int, seconds: float, error: Exception) -> None:
        try:
            self.attempt_failed(sequence, element, attempts, error)
        finally:
            self._end("failed", attempts, seconds, _type_of(error))

    def cancelled(self, sequence: int, element: Any, attempts: int, seconds: float) -> None:
        self._end("cancelled", attempts, seconds)

    def _end(self, outcome: str, attempts: int, seconds: float, error_type: str | None = None) -> None:
        running = self._running()
        if running is None:
            return  # it timed out before, and `on_error` counts it as failed now
        running.observer = None
        ending: dict[str, AttributeValue] = {f"{_SCOPE}.outcome": outcome}
        if error_type is not None:
            ending["error.type"] = error_type
        try:
            running.end({**ending, f"{_SCOPE}.attempts": attempts})
        finally:  # a span processor may raise
            self._meters.active.add(-1, self._attributes)
            self._meters.ended({**self._attributes, **ending}, self._attributes, attempts, seconds)

    def _running(self) -> _Running | None:
        """The invocation that runs in this task. None: it has ended."""
        running = _RUNNING.get()
        return running if running is not None and running.observer is self else None


class _Running:
    """An invocation that runs. It is in the context of its record, which all attempts share, whatever task makes them.

    Attributes:
        observer: That of its operator; None: it has ended.
    """

    __slots__ = ("_recorded", "_span", "_token", "observer")

    def __init__(self, observer: OpenTelemetryObserver) -> None:
        self.observer: OpenTelemetryObserver | None = observer
        self._span: trace.Span | None = None
        self._recorded = -1

    def enter(self, span: trace.Span) -> None:
        """Make its span the current one, until the invocation ends."""
        self._span = span
        self._token: Token[context.Context] = context.attach(trace.set_span_in_context(span))

    def record(self, error: Exception, attempt: int) -> None:
        """Add an event for the attempt's exception, once per attempt. Several attempts may raise the same object."""
        if self._span is None or attempt == self._recorded:
            return
        self._recorded = attempt
        attributes: dict[str, AttributeValue] = {f"{_SCOPE}.attempt": attempt, **_without_element(error)}
        try:
            self._span.record_exception(error, attributes)
        except Exception:  # noqa: BLE001 - the exception's `__str__` raises
            self._span.add_event(
                "exception", {"exception.type": _type_of(error), "exception.message": text_of(error), **attributes}
            )

    def end(self, attributes: Mapping[str, AttributeValue]) -> None:
        """End its span, if it has one."""
        if self._span is None:
            return
        context.detach(self._token)
        try:
            self._span.set_attributes(attributes)
            if "error.type" in attributes:
                self._span.set_status(trace.StatusCode.ERROR, str(attributes["error.type"]))
        finally:
            self._span.end()


_RUNNING: ContextVar[_Running | None] = ContextVar("trio_asyncio_io running invocation", default=None)


class _Meters:
    """The instruments of the metrics."""

    def __init__(self, meter: metrics.Meter) -> None:
        self.active = meter.create_up_down_counter(
            f"{_SCOPE}.active_invocations", "{invocation}", "Invocations running now"
        )
        self._invocations = meter.create_counter(f"{_SCOPE}.invocations", "{invocation}", "Invocations that have ended")
        self._attempts = meter.create_counter(
            f"{_SCOPE}.attempts", "{attempt}", "Attempts of invocations that have ended"
        )
        self._duration = meter.create_histogram(
            f"{_SCOPE}.invocation.duration",
            "s",
            "Time from an invocation's start to its end, attempts and backoffs included",
            explicit_bucket_boundaries_advisory=_BUCKETS,
        )

    def ended(
        self,
        by_outcome: Mapping[str, AttributeValue],
        attributes: Mapping[str, AttributeValue],
        attempts: int,
        seconds: float,
    ) -> None:
        self._invocations.add(1, by_outcome)
        if attempts:  # otherwise a gate has refused the record, so there was no call
            self._duration.record(seconds, by_outcome)
        self._attempts.add(attempts, attributes)


def _type_of(error: Exception) -> str:
    """The class name as in the attribute `exception.type`: with its module, unless that is builtins."""
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _without_element(error: Exception) -> dict[str, str]:
    """Event attributes in place of the default ones, for an error of this package whose message quotes the element."""
    if not isinstance(error, AttemptTimeoutError):
        return {}
    return {
        "exception.message": f"no result within its attempt_timeout of {error.timeout:g} s",
        "exception.stacktrace": "",
    }
