"""The sums: where the time of operators has gone, and the means and shares that follow from it."""

from __future__ import annotations

from dataclasses import dataclass

from .._values.public import share_descriptions
from .statistics import Counts


@share_descriptions(Counts)
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)  # pyright: ignore[reportGeneralTypeIssues]
class Sums(Counts):  # type: ignore[misc] # frozen, as `Counts` is
    """Where the time of one or several operators has gone, in seconds. `Totals` adds the verdict.

    Args:
        operators: The number of operators.
        ordered: The number of operators with the mode "ordered".
        capacity: Upper limit of invocations that run at once in an operator.
        buffer: Upper limit of records that an operator holds.
        group: Upper limit of records in a call. 0: without the option `group`.
        seconds: The length of the runs so far.
        supply: The part of `seconds` in which records could start. It ends after the input has ended and all records
            have started, at the next end of a call or start of a retry that leaves no call waiting for a gate. If no
            call runs, it ends immediately.
        busy: The time for which invocations held a slot.
        source: The time in which a slot was free, the buffer had room, the input had not ended, and no record waited.
            A record that waits for its group, or for its retry, does not count.
        withheld: The part of `source` in which Spark took outputs and gave no input.
        full: The time in which a slot was free, the buffer was full, and no record waited for its key.
        consumer: The time in which outputs waited for the consumer.
        cpu: The CPU time of the loop's thread and, where the system counts it, the thread's wait for the CPU.
        keyed: The time in which a slot was free, and all waiting records waited for an earlier one with their key.
        gated: The time in which a slot was free, and a gate held back calls.
        retries: The time in which a slot was free, and new records waited until fewer records wait for their retry.
        blocked: The time in which a call ran that let no other task run.
        repeated_seconds: The sum of the durations of attempts that were retried.
        rested_seconds: The sum of the backoffs of records, which hold no slot.
        timed_out_seconds: The sum of the durations of invocations that their deadline ended.
        low_calls: Calls at a low load: at most a quarter of the capacity ran at once.
        low_latency_seconds: The sum of their durations.
        high_calls: Calls at a high load: more than half of the capacity ran at once.
        high_latency_seconds: The sum of their durations.
    """

    operators: int = 0
    ordered: int = 0
    capacity: int = 0
    buffer: int = 0
    group: int = 0
    seconds: float = 0.0
    supply: float = 0.0
    busy: float = 0.0
    source: float = 0.0
    withheld: float = 0.0
    full: float = 0.0
    consumer: float = 0.0
    cpu: float = 0.0
    keyed: float = 0.0
    gated: float = 0.0
    retries: float = 0.0
    blocked: float = 0.0
    repeated_seconds: float = 0.0
    rested_seconds: float = 0.0
    timed_out_seconds: float = 0.0
    low_calls: int = 0
    low_latency_seconds: float = 0.0
    high_calls: int = 0
    high_latency_seconds: float = 0.0

    # Means and shares, of the mean operator

    @property
    def call_seconds(self) -> float:
        """The sum of the durations of invocations without backoffs: the time for which they held slots."""
        return self.latency_seconds - self.rested_seconds

    @property
    def mean_latency(self) -> float:
        """The mean time for which an invocation held a slot."""
        return share_of(self.call_seconds, self.records)

    @property
    def size(self) -> float:
        """The mean number of records in a call."""
        return self.group_size or 1.0

    @property
    def first_calls(self) -> float:
        """The number of calls that have ended, without retries; with groups, an estimate."""
        return self.records / self.size

    @property
    def in_flight(self) -> float:
        """The mean number of calls that ran at once, over the time in which there were elements."""
        return share_of(self.busy, self.supply)

    @property
    def slots_busy(self) -> float:
        """The share of the slots that were busy."""
        return share_of(self.in_flight, self.capacity)

    @property
    def slot_wait_share(self) -> float:
        """The share of the time in which no slot was free."""
        return max(0.0, 1.0 - self.share_of_supply(self.source + self.full + self.keyed + self.retries + self.gated))

    @property
    def allowed(self) -> float:
        """Records per second that the slots allow at this latency."""
        return self.capacity * self.size / self.mean_latency

    @property
    def started_at_once(self) -> bool:
        """Whether there were no more calls than slots, so that no call had to wait for a slot.

        Among several operators, one may have had most of the records. So none of them may have used all of its slots.
        """
        calls = self.first_calls + self.running
        return calls <= self.capacity or (calls <= self.operators * self.capacity and self.peak_running < self.capacity)

    def share_of_run(self, seconds: float) -> float:
        """This time as a share of the run."""
        return share_of(seconds, self.seconds)

    def share_of_supply(self, seconds: float) -> float:
        """This time as a share of the time in which there were elements."""
        return share_of(seconds, self.supply)

    def share_of_calls(self, seconds: float) -> float:
        """This sum as a share of the time of calls."""
        return min(1.0, share_of(seconds, self.call_seconds))


def share_of(part: float, whole: float) -> float:
    """The part as a share of the whole; 0.0 if there is no whole."""
    return part / whole if whole > 0 else 0.0
