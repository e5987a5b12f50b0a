"""The base class of observers: one hook for each step of a record."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING, Any

from .._account.statistics import Counters, Statistics
from .._account.verdict import Verdict
from .elements import Watermark

if TYPE_CHECKING:
    from .options import Options


class Observer:
    """Hooks for each step of a record; subclass it and override those that you need.

        accepted ─▶ waits_for_slot? ─▶ (held_back ─▶ waits_for_slot?)* ─▶ started
                            ─▶ (attempt_failed? ─▶ backing_off ─▶ waits_for_slot
                            ─▶ (held_back ─▶ waits_for_slot?)* ─▶ retried)*
                            ─▶ completed | attempt_failed? ─▶ failed | timed_out ─▶ failed? | cancelled
                            ─▶ slot_freed ─▶ dequeued ─▶ emitted*

        watermark_accepted ─▶ watermark_emitted

    All of them are between `run_started` and `run_ended`.

    The operator calls a hook in the task that takes the step, immediately and without a checkpoint. A hook must be
    quick and must not await. The hooks from `started` to `slot_freed` run in the context of the record, so context
    variables that a hook sets are there in its calls and in the later hooks, whatever task makes the calls. Ctrl-C does
    not interrupt a hook. An operator without an observer pays nothing for this, and a hook that is not overridden when
    the operator is created costs little. With the option `group`, `grouped` is called before the `started` or
    `retried` of the records that share a call. Each record has a context of its own, but the call of its group runs in
    that of the operator's block.

    If a hook raises, the exception is logged to the logger "trio_asyncio_io", and the operator continues without the
    observer, as Trio does with its instruments.

    The arguments of the hooks:

    * `sequence`: the record's or watermark's position in the operator's input, from 0.
    * `element`: the `StreamRecord` or bare value that was accepted.
    * `attempt`: the number of the call, from 1. `attempts`: the number of calls made.
    * `seconds`: the time since `started`, on Trio's clock, backoffs included.

    Example:
        class Slow(Observer):
            def completed(self, sequence, element, attempts, seconds):
                if seconds > 1.0:
                    print(element, "took", seconds)
    """

    def run_counted(self, counters: Counters) -> None:
        """The operator's block is being entered: `run_started` follows.

        The operator counts in `counters`, under the names of `Statistics`. An observer may read it at any moment of the
        run, such as once a second, in place of a hook for each record. It must not change it.
        """

    def run_started(self, options: Options) -> None:
        """The operator's block was entered."""

    def run_ended(self, statistics: Statistics, verdict: Verdict) -> None:
        """The operator's block has ended, with these numbers."""

    def accepted(self, sequence: int, element: Any) -> None:
        """The record was taken from the source, put, or restored."""

    def held_back(self, sequence: int, element: Any) -> None:
        """A gate holds back the record's first call, or a retry, for which a slot is free."""

    def waits_for_slot(self, sequence: int, element: Any) -> None:
        """The record waits for a slot from now on.

        Its backoff is over, the gates of its key no longer hold it back, or the earlier record of its key has ended.
        """

    def started(self, sequence: int, element: Any) -> None:
        """The record has a slot; its first call follows."""

    def grouped(self, sequences: Sequence[int]) -> None:
        """These records share the slot and the call that follow. Only with the option `group`."""

    def attempt_failed(self, sequence: int, element: Any, attempt: int, error: Exception) -> None:
        """A call raised; a retry may follow."""

    def backing_off(self, sequence: int, element: Any, attempt: int, seconds: float) -> None:
        """The call raised, or its result is retried; the next one follows after these seconds. The slot is free."""

    def retried(self, sequence: int, element: Any, attempt: int) -> None:
        """The record has a slot again; the call with this number follows."""

    def timed_out(self, sequence: int, element: Any, attempts: int, seconds: float) -> None:
        """The deadline expired, or a retry could not begin before it. `on_timeout` is called next.

        The running attempt has unwound.
        """

    def completed(self, sequence: int, element: Any, attempts: int, seconds: float) -> None:
        """The function returned a result."""

    def failed(self, sequence: int, element: Any, attempts: int, seconds: float, error: Exception) -> None:
        """The record has no result from its function; `on_error` is applied next."""

    def cancelled(self, sequence: int, element: Any, attempts: int, seconds: float) -> None:
        """The call was cancelled because the operator stops."""

    def slot_freed(self, sequence: int, element: Any) -> None:
        """The invocation has ended, and another one can start."""

    def dequeued(self, sequence: int, element: Any) -> None:
        """The record's place in the output order has come. The consumer can receive its outputs, if it has any."""

    def emitted(self, sequence: int, element: Any) -> None:
        """The consumer has received one of the record's outputs, or its dead letter."""

    def watermark_accepted(self, sequence: int, watermark: Watermark) -> None:
        """The watermark was taken from the source, put, or restored."""

    def watermark_emitted(self, sequence: int, watermark: Watermark) -> None:
        """The consumer has received the watermark."""


class Meter(Observer):
    """An observer that reads the operator's counters, so a record that completes costs it next to nothing.

    Its `completed` is called only for the records that took longer than `slow_from`, and its `slot_freed` only for
    those that did not complete.

    Attributes:
        slow_from: Seconds. It may change at any time.
    """

    slow_from: float = -inf
