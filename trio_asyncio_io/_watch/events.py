"""The records of a run as events of Chrome's Trace Event Format.

    process          the operator
    thread 0         "waiting and watermarks": spans that overlap, as asynchronous events, one category each
    thread n         "slot n": records (or groups) one after another, and in each of them an attempt and handlers

Times are whole microseconds since the start of the run. Perfetto derives colors from names, so spans of different kinds
have different names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from math import inf
from operator import itemgetter
from typing import Any, Final, TypeAlias

from .._values.describe import plural
from .files import FORMAT, WRITER, Trace, TraceError
from .steps import RecordSteps, Sample, Span, Stay, WatermarkSteps

__all__ = [
    "BACKOFF",
    "FOR_CONSUMER",
    "FOR_GATE",
    "FOR_KEY",
    "FOR_ORDER",
    "FOR_SLOT",
    "WATERMARK",
    "Event",
    "Recording",
    "merge",
    "trace_of",
]

Event: TypeAlias = dict[str, Any]

FOR_SLOT: Final = "wait for a slot"
FOR_KEY: Final = "wait for its key"
FOR_GATE: Final = "wait for a gate"
BACKOFF: Final = "backoff"
FOR_ORDER = "wait for the output order"
FOR_CONSUMER = "wait for the consumer"
WATERMARK = "watermark"


@dataclass(slots=True)
class Recording:
    """The records of one run.

    Attributes:
        zero: The instant at which the run started.
        last: The instant of the latest step; spans that have not ended are drawn until then.
        began: The wall-clock time of `zero`, in seconds since 1970, if it is recorded.
    """

    name: str
    records: Sample[RecordSteps]
    watermarks: Sample[WatermarkSteps]
    zero: float = 0.0
    last: float = 0.0
    began: float | None = None


def trace_of(run: Recording) -> Trace:
    """The run as a trace. The same steps always have the same trace."""
    make = _Events(run)
    stays = _stays_of(run)
    events = [event for stay in stays for event in make.of_stay(stay)]
    events += [event for steps in run.records.items() for event in make.beside_slots(steps)]
    events += [event for steps in run.watermarks.items() for event in make.of_watermark(steps)]
    # Stable: at one instant, the stays in a slot keep their order, and each of them is before its first attempt
    events.sort(key=lambda event: event["ts"])
    about: dict[str, Any] = {
        "writer": WRITER,
        "format": FORMAT,
        "records": len(run.records),
        "records_left_out": run.records.offered - len(run.records),
        "watermarks": len(run.watermarks),
        "watermarks_left_out": run.watermarks.offered - len(run.watermarks),
    }
    if run.began is not None:
        about["began"] = run.began
    names = _names(run.name, max((stay.slot for stay in stays), default=0))
    return {"traceEvents": [*names, *events], "displayTimeUnit": "ms", "otherData": about}


@dataclass(frozen=True, slots=True)
class _Part:
    """The part of a record in a stay. `number` counts the stays of the record, from 0."""

    steps: RecordSteps
    number: int

    @property
    def stay(self) -> Stay:
        return self.steps.stays[self.number]

    @property
    def outcome(self) -> str:
        is_last = self.number == len(self.steps.stays) - 1
        return self.steps.outcome or "unfinished" if is_last else "gave its slot back"

    def spans(self, kind: str) -> Iterator[Span]:
        """The attempt in this stay, or the handlers after it."""
        attempts = -1
        for span in self.steps.spans:
            attempts += span.kind == "attempt"
            if attempts == self.number and span.kind == kind:
                yield span


@dataclass(frozen=True, slots=True)
class _Stay:
    """The time in which a slot is busy with a record, or with those records of a group that are in the trace."""

    parts: Sequence[_Part]
    slot: int
    start: float
    end: float | None


def _stays_of(run: Recording) -> list[_Stay]:
    """All stays in their order, each in the lowest slot that was free.

    Computed from the instants, because Trio does not define which of two workers that wake at one instant comes first.
    """
    busy: list[tuple[float, int]] = []
    free: list[int] = []
    stays: list[_Stay] = []
    for start, end, _, parts in sorted(map(_bounds, _shared(run)), key=itemgetter(0, 1, 2)):
        while busy and busy[0][0] <= start:
            heappush(free, heappop(busy)[1])
        slot = heappop(free) if free else len(busy) + 1
        heappush(busy, (end, slot))
        stays.append(_Stay(parts, slot, start, None if end == inf else end))
    return stays


def _shared(run: Recording) -> Iterable[list[_Part]]:
    """The stays of records. The stays of one call are joined."""
    calls: dict[object, list[_Part]] = {}
    for steps in run.records.items():
        for number, stay in enumerate(steps.stays):
            calls.setdefault(stay.call or stay, []).append(_Part(steps, number))
    return calls.values()


def _bounds(parts: list[_Part]) -> tuple[float, float, int, list[_Part]]:
    ends = [inf if part.stay.end is None else part.stay.end for part in parts]
    return parts[0].stay.start, max(ends), parts[0].steps.sequence, parts


def _names(name: str, slots: int) -> Iterator[Event]:
    yield _metadata("process_name", 0, {"name": name})
    yield _metadata("process_sort_index", 0, {"sort_index": 1})
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

    def of_stay(self, stay: _Stay) -> Iterator[Event]:
        slot, steps, call = stay.slot, stay.parts[0].steps, stay.parts[0].stay.call
        name, arguments = _label(steps), _about(stay.parts[0])
        if call is not None:
            name = plural(call.records, "record")
            arguments = _together([_about(part) | {"label": _label(part.steps)} for part in stay.parts])
        yield self._complete("record", name, slot, start=stay.start, end=stay.end, arguments=arguments)
        yield from self._attempts(stay)
        yield from self._handlers(stay)
        for part in stay.parts:
            if part.outcome == "cancelled":
                yield self._instant("cancelled", slot, part.steps.freed, "t", {"sequence": part.steps.sequence})

    def _attempts(self, stay: _Stay) -> Iterator[Event]:
        """The attempt, which the records of a group share."""
        spans = [(part, span) for part in stay.parts for span in part.spans("attempt")]
        if not spans:
            return
        each = [_arguments(part.steps.sequence, span) for part, span in spans]
        arguments = each[0] if stay.parts[0].stay.call is None else _together(each)
        yield self._span(spans[0][1], arguments, stay.slot)

    def _handlers(self, stay: _Stay) -> Iterator[Event]:
        """The handlers. The handlers of a group run one after another."""
        end = stay.start
        for part in stay.parts:
            for span in part.spans("handler"):
                start = max(span.start, end)
                if span.end is None or span.end > start:  # otherwise there is no handler
                    yield self._span(replace(span, start=start), _arguments(part.steps.sequence, span), stay.slot)
                    end = inf if span.end is None else span.end

    def beside_slots(self, steps: RecordSteps) -> Iterator[Event]:
        label = _label(steps)
        for kind, start, end in self._waits(steps):
            is_only = not steps.stays and kind != FOR_CONSUMER  # of a record without an invocation
            if start != end or is_only:
                yield from self._wait(kind, label, steps.sequence, start, end)

    def of_watermark(self, steps: WatermarkSteps) -> Iterator[Event]:
        label = WATERMARK if steps.timestamp is None else f"{WATERMARK} {steps.timestamp}"
        yield from self._wait(WATERMARK, label, steps.sequence, steps.accepted, steps.received)
        if steps.received is not None:
            yield self._instant(label, 0, steps.received, "p", {"sequence": steps.sequence})

    def _span(self, span: Span, arguments: Event, slot: int) -> Event:
        outcome = arguments.get("outcome", "")
        name = f"{span.name} {outcome}" if outcome else span.name
        return self._complete(span.kind, name, slot, start=span.start, end=span.end, arguments=arguments)

    def _waits(self, steps: RecordSteps) -> Iterator[tuple[str, float, float | None]]:
        if steps.stays or steps.dequeued is None:  # otherwise a restored result, which needs no slot
            for span in steps.spans:
                if span.kind in {FOR_KEY, FOR_SLOT, FOR_GATE, BACKOFF}:
                    yield span.kind, span.start, span.end
        if steps.dequeued is not None or steps.outcome == "completed":
            since = steps.accepted if steps.freed is None else steps.freed  # a restored result needs no slot
            yield FOR_ORDER, since, steps.dequeued
        if steps.dequeued is not None and steps.received is not None:
            yield FOR_CONSUMER, steps.dequeued, steps.received

    def _complete(
        self, category: str, name: str, slot: int, *, start: float, end: float | None, arguments: Event
    ) -> Event:
        begin, stop = self._microseconds(start), self._microseconds(end)
        arguments = arguments if end is not None else {**arguments, "unfinished": True}
        return _event("X", category, name, slot, begin, dur=stop - begin, args=arguments)

    def _wait(self, kind: str, label: str, sequence: int, start: float, end: float | None) -> Iterator[Event]:
        number = {"local": hex(sequence)}
        arguments: dict[str, Any] = {"sequence": sequence, "label": label}
        if end is None:
            arguments["unfinished"] = True
        yield _event("b", kind, kind, 0, self._microseconds(start), id2=number, args=arguments)
        yield _event("e", kind, kind, 0, self._microseconds(end), id2=number, args={})

    def _instant(self, name: str, thread: int, at: float | None, scope: str, arguments: Event) -> Event:
        category = "cancelled" if scope == "t" else WATERMARK
        return _event("i", category, name, thread, self._microseconds(at), s=scope, args=arguments)

    def _microseconds(self, instant: float | None) -> int:
        """Since the start of the run. None: until the latest step."""
        return round(((self._last if instant is None else instant) - self._zero) * 1e6)


def _event(phase: str, category: str, name: str, thread: int, at: int, **more: Any) -> Event:
    return {"ph": phase, "cat": category, "name": name, "pid": 1, "tid": thread, "ts": at, **more}


def _about(part: _Part) -> Event:
    steps = part.steps
    counts = {"attempts": steps.attempts, "outputs": steps.outputs}
    return {"sequence": steps.sequence, "outcome": part.outcome, **counts}


def _arguments(sequence: int, span: Span) -> Event:
    arguments: Event = {"sequence": sequence}
    if span.outcome:
        arguments["outcome"] = span.outcome
    if span.error:
        arguments["error"] = span.error
    return arguments


def _together(records: list[Event]) -> Event:
    """The arguments of a span of several records: the common ones, and those of each record."""
    first, *others = records
    common = {key: value for key, value in first.items() if all(other.get(key) == value for other in others)}
    return common | {"sequence": first["sequence"], "records": records}


def _label(steps: RecordSteps) -> str:
    return f"record {steps.sequence}" if steps.value is None else steps.value


# Many traces as one


def merge(traces: Iterable[Trace]) -> Trace:
    """One trace from many, such as the traces of a Spark job's tasks, or of several runs to compare.

    Experimental: the function may change in any release.

    Args:
        traces: At least one. Traces of Spark tasks contain the time at which they began, so they are placed in time.
            Others keep their order, and all start at 0.

    Raises:
        TraceError: There is no trace, or only some of the traces contain the time at which they began.
    """
    several = list(traces)
    if not several:
        raise TraceError("there is no trace to merge")
    began = [trace["otherData"]["began"] for trace in several if "began" in trace["otherData"]]
    if began and len(began) < len(several):
        raise TraceError(
            f"{len(several) - len(began)} of {len(several)} traces do not contain the time at which they began: "
            "merge traces of Spark tasks, or traces of other runs, but not both"
        )
    zero = min(began, default=0.0)
    several.sort(key=lambda trace: trace["otherData"].get("began", 0.0))  # stable
    names, events, processes = list[Event](), list[Event](), 0
    for trace in several:
        shift = round((trace["otherData"].get("began", 0.0) - zero) * 1e6)
        last = processes
        for event in _moved(trace, processes, shift):
            (names if event["ph"] == "M" else events).append(event)
            last = max(last, event["pid"])
        processes = last
    events.sort(key=lambda event: event["ts"])
    return {"traceEvents": [*names, *events], "displayTimeUnit": "ms", "otherData": _about_all(several, zero)}


def _moved(trace: Trace, processes: int, shift: int) -> Iterator[Event]:
    """The events of a trace, with their processes after those that are there already."""
    for event in trace["traceEvents"]:
        process = event["pid"] + processes
        moved = {**event, "pid": process}
        if event["ph"] == "M":
            if event["name"] == "process_sort_index":
                moved["args"] = {"sort_index": process}
        else:
            moved["ts"] += shift
        yield moved


def _about_all(traces: list[Trace], zero: float) -> dict[str, Any]:
    abouts = [trace["otherData"] for trace in traces]
    about: dict[str, Any] = {"writer": WRITER, "format": FORMAT}
    for key in ("records", "records_left_out", "watermarks", "watermarks_left_out"):
        about[key] = sum(each.get(key, 0) for each in abouts)
    if zero:
        about["began"] = zero
    return about
