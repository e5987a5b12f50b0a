"""The evidence: what an operator has measured, as numbers for a verdict."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CALLS_OF_A_CLASS", "Evidence", "LoadClass"]

CALLS_OF_A_CLASS = 10  # so that its mean is meaningful


@dataclass(frozen=True, slots=True)
class LoadClass:
    """The latency at one load.

    Args:
        running: Invocations that ran at once, about.
        calls: Invocations that completed at this load.
        latency: The median of their durations, in seconds.
    """

    running: int
    calls: int
    latency: float


@dataclass(frozen=True, slots=True)
class Evidence:
    """What an operator has measured.

    Shares are from 0.0 to 1.0.

    Args:
        capacity, buffer: Its two limits.
        seconds: The length of the run so far.
        calls: Invocations that have ended.
        in_flight: Invocations that ran at once, the mean over the time in which there were elements.
        latency: The mean time for which an invocation held a slot, in seconds.
        longest: The longest duration, in seconds.
        source_wait: The share of the same time in which the input had not ended and the buffer had room.
        starved: The share of the same time in which the buffer was full and a slot was free.
        consumer: The share of the run in which outputs waited for the consumer.
        cpu: The share of the run in which the thread of the loop used the CPU.
        loads: The latency at each load, in ascending order.
        keyed: The share of the same time in which a record waited for an earlier one with the same key.
        repeated: The share of the time of calls that went into attempts that were retried.
        rested: The share of the time of invocations that their records spent in backoffs, without a slot.
        retried: Attempts after the first.
        timed_out: The share of the time of invocations that their deadline ended.
        peak: The most invocations that ran at once.
        gated: The share of the same time in which a gate held back at least one call.
        gates: By gate, the sum of the waits for it, in seconds.
        withheld: The share of the same time in which the input could not be read, because outputs were being written.
        operators: How many operators these are. All numbers are their sums, or the mean of their shares.
        running: Invocations that run now.
        failed: Invocations that failed or timed out.
    """

    capacity: int
    buffer: int
    seconds: float
    calls: int
    in_flight: float
    latency: float
    longest: float
    source_wait: float
    starved: float
    consumer: float
    cpu: float
    loads: tuple[LoadClass, ...] = ()
    keyed: float = 0.0
    repeated: float = 0.0
    rested: float = 0.0
    retried: int = 0
    timed_out: float = 0.0
    peak: int = 0
    gated: float = 0.0
    gates: tuple[tuple[str, float], ...] = ()
    withheld: float = 0.0
    operators: int = 1
    running: int = 0
    failed: int = 0

    @property
    def busy(self) -> float:
        """The share of the slots that were busy."""
        return self.in_flight / self.capacity

    @property
    def slot_wait(self) -> float:
        """The share of the time in which records waited for a slot."""
        return max(0.0, 1 - self.source_wait - self.starved)

    @property
    def allowed(self) -> float:
        """Calls per second that the slots allow at this latency."""
        return self.capacity / self.latency

    @property
    def started_at_once(self) -> bool:
        """Whether there were no more records than slots, so that none had to wait for one.

        Of several operators, one may have had many records. So none of them may have used all of its slots.
        """
        records = self.calls + self.running
        return records <= self.capacity or (records <= self.operators * self.capacity and self.peak < self.capacity)

    @property
    def compared(self) -> tuple[LoadClass, LoadClass] | None:
        """The lowest and the highest load; None if they are about equal."""
        loads = [each for each in self.loads if each.calls >= CALLS_OF_A_CLASS and each.latency > 0]
        return (loads[0], loads[-1]) if loads and 2 * loads[0].running < loads[-1].running else None
