"""The flow: where the time of an operator goes, as evidence for a verdict."""

from __future__ import annotations

from collections.abc import Callable

from .histogram import Durations, Histogram
from .queue import StreamElementQueue
from .verdict import Evidence, LoadClass

__all__ = ["Flow", "Latencies"]


class Latencies:
    """The latency of each invocation, by load.

    The load of an invocation is the number that ran when it started, or when it completed if that is higher. So
    invocations that start together, or remain at the end, count at the load that they shared. Classes of load are
    powers of two: class n has loads of n bits, and class 0 the invocations without a result, whose load is not known.

    Args:
        max_load: Upper limit of the load.

    Attributes:
        add: By class, the function that records a latency.
    """

    def __init__(self, max_load: int) -> None:
        self._max_load = max_load
        self._classes = [Durations() for _ in range(max_load.bit_length() + 1)]
        self.add = [durations.add for durations in self._classes]

    def fold(self) -> None:
        """Count the latencies that were recorded since the last call."""
        for durations in self._classes:
            if durations.unfolded:
                durations.fold()

    def histogram(self) -> Histogram:
        """The histogram of all latencies."""
        return sum((durations.histogram() for durations in self._classes), Histogram())

    def seconds(self) -> float:
        """The sum of all latencies."""
        return sum(durations.seconds() for durations in self._classes)

    def loads(self) -> tuple[LoadClass, ...]:
        """The latency of each class that has invocations."""
        seen = [(bits, each.histogram()) for bits, each in enumerate(self._classes) if bits]
        return tuple(LoadClass(self._middle(bits), each.count, each.p50) for bits, each in seen if each.count)

    def _middle(self, bits: int) -> int:
        """A typical load of a class; for the highest, the limit."""
        return self._max_load if bits == self._max_load.bit_length() else 3 << bits >> 2


class Wait:
    """The time in which at least one task waited for something."""

    __slots__ = ("_seconds", "_since", "_tasks")

    def __init__(self) -> None:
        self._tasks = 0
        self._since = 0.0
        self._seconds = 0.0

    def begin(self, now: float) -> None:
        """A task starts to wait."""
        if not self._tasks:
            self._since = now
        self._tasks += 1

    def end(self, now: float) -> None:
        """A task no longer waits."""
        self._tasks -= 1
        if not self._tasks:
            self._seconds += now - self._since

    @property
    def is_on(self) -> bool:
        """Whether a task waits now."""
        return self._tasks > 0

    def seconds(self, now: float) -> float:
        """The time so far."""
        return self._seconds + (now - self._since if self._tasks else 0.0)


class Flow:
    """Where the time of one operator goes.

    Written where a task waits anyway, so a record that nobody waits for costs nothing.

    Args:
        capacity, buffer: The operator's limits.

    Attributes:
        latencies: The latency of each invocation.
        room: The feeder's waits for room in the buffer.
        starved: The parts of these waits in which a slot was free.
        output: The consumer's waits for an output.
        gate: The waits of calls for a gate.
        gate_seconds: By gate, the sum of the waits for it.
        handlers_seconds: The time that records held their slot after their last call: `on_timeout` and `on_error`.
    """

    def __init__(self, capacity: int, buffer: int) -> None:
        self.latencies = Latencies(capacity)
        self.room = Wait()
        self.starved = Wait()
        self.output = Wait()
        self.gate = Wait()
        self.gate_seconds: dict[str, float] = {}
        self.handlers_seconds = 0.0
        self._capacity = capacity
        self._buffer = buffer
        self._begin = (0.0, 0.0)
        self._end: tuple[float, float] | None = None
        self._input_end: float | None = None
        self._supply_end: tuple[float, float, float, float] | None = None

    def begin(self, clocks: tuple[float, float]) -> None:
        """The operator starts. `clocks` are the time and the CPU time of its thread."""
        self._begin = clocks

    def end(self, clocks: tuple[float, float]) -> None:
        """The operator has ended. The clocks are not read any more."""
        self._end = clocks

    def end_input(self, now: float) -> None:
        """The input has ended."""
        self._input_end = now

    def wait_for_room(self, now: float, *, has_free_slot: bool) -> None:
        """The feeder starts to wait for room."""
        self.room.begin(now)
        if has_free_slot:
            self.starved.begin(now)

    def have_room(self, now: float) -> None:
        """The feeder no longer waits for room."""
        self.room.end(now)
        if self.starved.is_on:
            self.starved.end(now)

    def let_go(self, seconds: float, now: float, gate: str) -> None:
        """A call has waited for this gate, and does no longer."""
        self.gate.end(now)
        self.gate_seconds[gate] = self.gate_seconds.get(gate, 0.0) + seconds

    def idle(self, now: float, queue: StreamElementQueue) -> None:
        """A slot becomes free, and there is no record to start."""
        if self.room.is_on and not self.starved.is_on:
            self.starved.begin(now)
        elif self._input_end is not None and self._supply_end is None:
            self._supply_end = self._supply(now, queue)  # free slots are normal from here on

    def evidence(self, read_clocks: Callable[[], tuple[float, float]], queue: StreamElementQueue) -> Evidence:
        """The numbers so far. The queue has the invocations that have not ended."""
        now, cpu_seconds = self._end or read_clocks()
        begin, begin_cpu = self._begin
        supply_end, busy, source_wait, starved = self._supply_end or self._supply(now, queue)
        supply = supply_end - begin
        histogram = self.latencies.histogram()
        return Evidence(
            capacity=self._capacity,
            buffer=self._buffer,
            seconds=now - begin,
            calls=histogram.count,
            in_flight=_share(busy, supply),
            latency=_share(self.latencies.seconds(), histogram.count),
            longest=histogram.quantile(1.0),
            source_wait=_share(source_wait, supply),
            starved=_share(starved, supply),
            output_wait=_share(self.output.seconds(now), now - begin),
            cpu=_share(cpu_seconds - begin_cpu, now - begin),
            loads=self.latencies.loads(),
            gated=_share(self.gate.seconds(supply_end), supply),
            gates=tuple(self.gate_seconds.items()),
        )

    def _supply(self, now: float, queue: StreamElementQueue) -> tuple[float, float, float, float]:
        """The time, and up to it the busy time of all slots, the wait for the source, and the time without jobs."""
        busy = self.latencies.seconds() + self.handlers_seconds
        busy += sum(now - entry.since for entry in queue.entries() if entry.load and entry.results is None)
        input_end = now if self._input_end is None else self._input_end
        source_wait = input_end - self._begin[0] - self.room.seconds(now)
        return now, busy, source_wait, self.starved.seconds(now)


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0
