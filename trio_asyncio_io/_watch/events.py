"""The records of a run as events of Chrome's Trace Event Format.

    process          the operator
    thread 0         "waiting and watermarks": spans that overlap, as asynchronous events, one category each
    thread n         "slot n": records (or groups) one after another, and in each of them an attempt and handlers

Times are whole microseconds since the start of the run. Perfetto derives colors from names, so spans of different kinds
have different names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from math import inf
from operator import attrgetter
from typing import Any, TypeAlias

from .._values.describe import plural
from .steps import IN_SLOT, RecordSteps, Span, Stay, SystematicSample, WatermarkSteps

Event: TypeAlias = dict[str, Any]
Trace: TypeAlias = dict[str, Any]

FOR_CONSUMER = "wait for the consumer"
WATERMARK = "watermark"


@dataclass(slots=True)
class Recording:
    """The records of one run.

    Attributes:
        zero: The instant at which the run started.
        last: The instant of the latest step; spans that have not ended are drawn until then.
    """

    name: str
    records: SystematicSample[RecordSteps]
    watermarks: SystematicSample[WatermarkSteps]
    zero: float = 0.0
    last: float = 0.0


def trace_of(run: Recording) -> Trace:
    """The run as a trace. The same steps always have the same trace."""
    make = _Events(run)
    stays = _stays_of(run)
    events = [event for stay in stays for event in make.of_stay(stay)]
    events += [event for steps in run.records.items() for event in make.beside_slots(steps)]
    events += [event for steps in run.watermarks.items() for event in make.of_watermark(steps)]
    # Stable: at one instant, the stays in a slot keep their order, and each of them is before its first attempt
    events.sort(key=lambda event: event["ts"])
    about = {
        "records": len(run.records),
        "records_left_out": run.records.offered - len(run.records),
        "watermarks": len(run.watermarks),
        "watermarks_left_out": run.watermarks.offered - len(run.watermarks),
    }
    names = _names(run.name, max((stay.slot for stay in stays), default=0))
    return {"traceEvents": [*names, *events], "displayTimeUnit": "ms", "otherData": about}


@dataclass(frozen=True, slots=True)
class _Part:
    """The part of a record in a stay."""

    steps: RecordSteps
    stay: Stay

    @property
    def outcome(self) -> str:
        is_last = self.stay is self.steps.stays[-1]
        return self.steps.outcome or "unfinished" if is_last else "gave its slot back"

    def spans(self, kind: str) -> Iterator[Span]:
        """The attempt in this stay, or the handlers after it."""
        return (span for span in self.steps.spans if span.stay is self.stay and span.kind == kind)


@dataclass(slots=True)
class _CallStay:
    """The time of a call in its slot: of a record, or of those records of a group that are in the trace."""

    parts: Sequence[_Part]
    slot: int = 0

    @property
    def start(self) -> float:
        return self.parts[0].stay.start

    @property
    def end(self) -> float:
        return max(part.stay.end for part in self.parts)

    @property
    def sequence(self) -> int:
        return self.parts[0].steps.sequence


def _stays_of(run: Recording) -> list[_CallStay]:
    """All stays in their order, each in the lowest slot that was free.

    Computed from the instants, because Trio does not define which of two workers that wake at one instant comes first.
    """
    calls: dict[object, list[_Part]] = {}
    for steps in run.records.items():
        for stay in steps.stays:
            calls.setdefault(stay.call or stay, []).append(_Part(steps, stay))
    stays = sorted(map(_CallStay, calls.values()), key=attrgetter("start", "end", "sequence"))
    busy: list[tuple[float, int]] = []
    free: list[int] = []
    for each in stays:
        while busy and busy[0][0] <= each.start:
            heappush(free, heappop(busy)[1])
        each.slot = heappop(free) if free else len(busy) + 1
        heappush(busy, (each.end, each.slot))
    return stays


def _names(name: str, slots: int) -> Iterator[Event]:
    yield _metadata("process_name", 0, {"name": name})
    for thread, label in [(0, "waiting and watermarks"), *((slot, f"slot {slot}") for slot in range(1, slots + 1))]:
        yield _metadata("thread_name", thread, {"name": label})
        yield _metadata("thread_sort_index", thread, {"sort_index": thread})


def _metadata(name: str, thread: int, arguments: dict[str, Any]) -> Event:
    return {"ph": "M", "name": name, "pid": 1, "tid": thread, "ts": 0, "args": arguments}


class _Events:
    """Makes the events of one run."""

    def __init__(self, run: Recording) -> None:
        self._zero = run.zero
        self._last = run.last

    def of_stay(self, stay: _CallStay) -> Iterator[Event]:
        call = stay.parts[0].stay.call
        name = _label(stay.parts[0].steps) if call is None else plural(call.records, "record")
        arguments = _together([_about(part) for part in stay.parts])
        yield self._complete("record", name, stay.slot, start=stay.start, end=stay.end, arguments=arguments)
        yield from self._attempts(stay)
        yield from self._handlers(stay)

    def _attempts(self, stay: _CallStay) -> Iterator[Event]:
        """The attempt, which the records of a group share."""
        spans = [(part, span) for part in stay.parts for span in part.spans("attempt")]
        if spans:  # otherwise a gate has refused it
            arguments = _together([_arguments(part.steps.sequence, span) for part, span in spans])
            yield self._span(spans[0][1], arguments, stay.slot)

    def _handlers(self, stay: _CallStay) -> Iterator[Event]:
        """The handlers. The handlers of a group run one after another."""
        end = stay.start
        for part in stay.parts:
            for span in part.spans("handler"):
                start = max(span.start, end)
                if span.end > start:  # otherwise there is no handler
                    yield self._span(replace(span, start=start), _arguments(part.steps.sequence, span), stay.slot)
                    end = span.end

    def beside_slots(self, steps: RecordSteps) -> Iterator[Event]:
        label = _label(steps)
        for kind, start, end in self._waits(steps):
            is_only = not steps.stays and kind != FOR_CONSUMER  # of a record without an invocation
            if start != end or is_only:
                yield from self._wait(kind, label, steps.sequence, start, end)

    def of_watermark(self, steps: WatermarkSteps) -> Iterator[Event]:
        label = WATERMARK if steps.timestamp is None else f"{WATERMARK} {steps.timestamp}"
        yield from self._wait(WATERMARK, label, steps.sequence, steps.accepted, steps.received)

    def _span(self, span: Span, arguments: Event, slot: int) -> Event:
        outcome = arguments.get("outcome", "")
        name = f"{span.name} {outcome}" if outcome else span.name
        return self._complete(span.kind, name, slot, start=span.start, end=span.end, arguments=arguments)

    def _waits(self, steps: RecordSteps) -> Iterator[tuple[str, float, float]]:
        if steps.stays or steps.dequeued == inf:  # otherwise a restored result, which needs no slot
            for span in steps.spans:
                if span.kind not in IN_SLOT:
                    yield span.kind, span.start, span.end
        if steps.dequeued < inf or steps.outcome == "completed":
            since = steps.accepted if steps.freed == inf else steps.freed  # a restored result needs no slot
            yield "wait for the output order", since, steps.dequeued
        if steps.received < inf:
            yield FOR_CONSUMER, steps.dequeued, steps.received

    def _complete(self, category: str, name: str, slot: int, *, start: float, end: float, arguments: Event) -> Event:
        begin, stop = self._microseconds(start), self._microseconds(end)
        return _event("X", category, name, slot, begin, dur=stop - begin, args=_with_end(arguments, end))

    def _wait(self, kind: str, label: str, sequence: int, start: float, end: float) -> Iterator[Event]:
        number = {"local": hex(sequence)}
        arguments = _with_end({"sequence": sequence, "label": label}, end)
        yield _event("b", kind, kind, 0, self._microseconds(start), id2=number, args=arguments)
        yield _event("e", kind, kind, 0, self._microseconds(end), id2=number, args={})

    def _microseconds(self, instant: float) -> int:
        """Since the start of the run. Spans that have not ended are drawn until the latest step."""
        return round((min(instant, self._last) - self._zero) * 1e6)


def _event(phase: str, category: str, name: str, thread: int, at: int, **more: Any) -> Event:
    return {"ph": phase, "cat": category, "name": name, "pid": 1, "tid": thread, "ts": at, **more}


def _with_end(arguments: Event, end: float) -> Event:
    return arguments if end < inf else {**arguments, "unfinished": True}


def _about(part: _Part) -> Event:
    steps = part.steps
    counts = {"attempts": steps.attempts, "outputs": steps.outputs}
    return {"sequence": steps.sequence, "label": _label(steps), "outcome": part.outcome, **counts}


def _arguments(sequence: int, span: Span) -> Event:
    found = {"sequence": sequence, "outcome": span.outcome, "error": span.error}
    return {name: value for name, value in found.items() if value != ""}


def _together(records: list[Event]) -> Event:
    """The arguments of a span. For several records: what they have in common, and the arguments of each record."""
    first, *others = records
    if not others:
        return first
    common = {key: value for key, value in first.items() if all(other.get(key) == value for other in others)}
    return common | {"sequence": first["sequence"], "records": records}


def _label(steps: RecordSteps) -> str:
    return f"record {steps.sequence}" if steps.value is None else steps.value
