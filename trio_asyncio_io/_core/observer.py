"""The observer: what an operator tells of each element's life, to whoever wants to know."""

from __future__ import annotations

from typing import Any

__all__ = ["Observer"]


class Observer:
    """Hooks for each step of a record's life; subclass it and write those that you want.

        accepted ─▶ started ─▶ attempt_failed* ─▶ completed | failed | cancelled ─▶ emitted*
                                                  timed_out ─▶ failed or not

    A hook is called in the task that does the step, at once and without a checkpoint: it must be quick and must not
    await. `started` up to `completed`, `failed` or `cancelled` are called in one task, that of the call. A hook that
    raises is logged to the logger "trio_asyncio_io". After that the operator goes on without the observer (as Trio does
    with its instruments): it calls only `completed`, `timed_out`, `failed` or `cancelled`, once for each record whose
    `started` was called before, so that nothing of theirs stays open. Ctrl-C does not interrupt a hook. An operator
    without an observer does not pay for this.

    `sequence` is the record's position in the operator's input, from 0, and `element` the `StreamRecord` or bare value
    that was accepted. Watermarks are not told of.

    Example:
        class Slow(Observer):
            def completed(self, sequence, element, attempts, seconds):
                if seconds > 1.0:
                    print(element, "took", seconds)
    """

    def accepted(self, sequence: int, element: Any) -> None:
        """The record was taken from upstream, or restored."""

    def started(self, sequence: int, element: Any) -> None:
        """It has got its slot; its first call follows."""

    def attempt_failed(self, sequence: int, element: Any, attempt: int, error: Exception) -> None:
        """Call number `attempt`, from 1, has raised; there may be another one."""

    def timed_out(self, sequence: int, element: Any, attempts: int, seconds: float) -> None:
        """Its deadline has struck and the running attempt has unwound; `on_timeout` is asked next."""

    def completed(self, sequence: int, element: Any, attempts: int, seconds: float) -> None:
        """Its function gave a result, `seconds` after `started`."""

    def failed(self, sequence: int, element: Any, attempts: int, seconds: float, error: Exception) -> None:
        """It has no result of its own; `on_error` decides what becomes of it."""

    def cancelled(self, sequence: int, element: Any, attempts: int, seconds: float) -> None:
        """The operator stops, and so did its call."""

    def emitted(self, sequence: int, element: Any) -> None:
        """The consumer has received one of its outputs, or its dead letter."""
