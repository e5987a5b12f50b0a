"""Collects the spans and metrics of an OpenTelemetryObserver in memory."""

from __future__ import annotations

from collections import Counter
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from trio_asyncio_io.opentelemetry import OpenTelemetryObserver

OUTCOME = "trio_asyncio_io.outcome"


class Unended(SpanProcessor):
    """Counts spans that have started and not ended."""

    count = 0

    def on_start(self, span: Span, parent_context: Any = None) -> None:
        self.count += 1

    def on_end(self, span: ReadableSpan) -> None:
        self.count -= 1


class Backend:
    """Collects spans and metrics in memory."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self._reader = InMemoryMetricReader()
        self.unended = Unended()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(self.unended)
        self.tracers.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.meters = MeterProvider([self._reader])
        self.tracer = self.tracers.get_tracer("test")

    def observer(self, name: str = "lookup", **options: Any) -> OpenTelemetryObserver:
        return OpenTelemetryObserver(name, tracer_provider=self.tracers, meter_provider=self.meters, **options)

    def spans(self, name: str = "lookup") -> list[ReadableSpan]:
        return [span for span in self._exporter.get_finished_spans() if span.name == name]

    def span(self, name: str = "lookup") -> ReadableSpan:
        (span,) = self.spans(name)
        return span

    def points(self, metric: str) -> dict[str, Any]:
        """The data points of a metric by outcome; "" for a metric without one."""
        return {point.attributes.get(OUTCOME, ""): point for point in self._points(metric)}

    def counted(self, metric: str) -> dict[str, int]:
        """What a metric has counted by outcome, over all types of errors."""
        counts: Counter[str] = Counter()
        for point in self._points(metric):
            counts[point.attributes.get(OUTCOME, "")] += getattr(point, "count", 0) or getattr(point, "value", 0)
        return dict(counts)

    def _points(self, metric: str) -> list[Any]:
        data = self._reader.get_metrics_data()
        metrics = data.resource_metrics[0].scope_metrics[0].metrics if data else ()
        return [
            point for each in metrics if each.name == f"trio_asyncio_io.{metric}" for point in each.data.data_points
        ]

    def numbers(self, metric: str) -> dict[str, Any]:
        return {outcome: point.value for outcome, point in self.points(metric).items()}

    def shutdown(self) -> None:
        self.tracers.shutdown()
        self.meters.shutdown()


def attributes_of(span: ReadableSpan) -> dict[str, Any]:
    return {name.removeprefix("trio_asyncio_io."): value for name, value in (span.attributes or {}).items()}


def assert_nothing_left(backend: Backend) -> None:
    assert backend.unended.count == 0
    assert backend.numbers("active_invocations") in ({}, {"": 0})


async def run(operator: Any) -> None:
    async with operator as results:
        async for _ in results:
            pass
