import trio
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from trio_asyncio_io import ordered_wait
from trio_asyncio_io.opentelemetry import OpenTelemetryObserver

exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))


async def lookup(value):
    with provider.get_tracer("client").start_as_current_span("request"):
        return value.upper()


async def main():
    observer = OpenTelemetryObserver("weather", tracer_provider=provider)
    async with ordered_wait("c", lookup, timeout=5.0, observer=observer) as results:
        print([result async for result in results])

    request, weather = exporter.get_finished_spans()
    print("a child:", request.parent.span_id == weather.context.span_id)
    for name, value in weather.attributes.items():
        print(name, "=", value)


if __name__ == "__main__":
    trio.run(main)
