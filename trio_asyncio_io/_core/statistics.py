"""Statistics: what an operator has done so far, as numbers."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Counters", "Statistics"]


@dataclass(frozen=True, slots=True)
class Statistics:
    """An operator's numbers at one moment. Counts are of records unless they say otherwise.

    Each invocation that has ended is one of completed, failed, timed_out or cancelled.

    Attributes:
        running: Invocations running now.
        buffered: Records accepted and not yet received downstream, now.
        peak_running: Most invocations that ever ran at once; never above the capacity.
        peak_buffered: Most records that were ever held at once; never above the buffer.
        emitted: Outputs that the consumer has received; watermarks do not count.
        completed: Invocations whose function gave a result.
        retried: Calls after the first.
        retries_denied: Calls after the first that the retry budget did not allow.
        timed_out: Invocations that their deadline ended, whatever `on_timeout` made of them.
        failed: Invocations whose last call raised, whatever `on_error` made of them.
        skipped: Elements left out by `on_error="skip"`; each is also failed or timed_out.
        dead_lettered: Elements that became dead letters; each is also failed or timed_out.
        cancelled: Invocations cancelled because the operator stopped.
        slot_wait_seconds: Time that records waited between acceptance and their invocation's start, summed.
        head_wait_seconds: Time that done records waited for their turn to go out, summed.
    """

    running: int = 0
    buffered: int = 0
    peak_running: int = 0
    peak_buffered: int = 0
    emitted: int = 0
    completed: int = 0
    retried: int = 0
    timed_out: int = 0
    failed: int = 0
    skipped: int = 0
    cancelled: int = 0
    slot_wait_seconds: float = 0.0
    head_wait_seconds: float = 0.0
    retries_denied: int = 0
    dead_lettered: int = 0


class Counters:
    """The numbers while they still change; the names are those of `Statistics`."""

    __slots__ = tuple(Statistics.__dataclass_fields__)

    def __init__(self) -> None:
        for name in self.__slots__:
            setattr(self, name, Statistics.__dataclass_fields__[name].default)

    running: int
    buffered: int
    peak_running: int
    peak_buffered: int
    emitted: int
    completed: int
    retried: int
    timed_out: int
    failed: int
    skipped: int
    cancelled: int
    slot_wait_seconds: float
    head_wait_seconds: float
    retries_denied: int
    dead_lettered: int

    def freeze(self) -> Statistics:
        """The numbers as they stand now."""
        return Statistics(**{name: getattr(self, name) for name in self.__slots__})
