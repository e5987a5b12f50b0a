"""The ends of calls: what becomes of each record of a call that has ended.

    the call                                       each of its records
    returned ─────────────────────────────────────▶ is completed
       │  └─ its result is retried ───────────────▶ waits for its next attempt
    raised ── it is retried, or called in a half ─▶ waits for its next attempt
       │  └─ otherwise ───────────────────────────▶ fails
    the first deadline has cancelled it ──────────▶ times out, or for other records than its own: as if it had raised
    a gate has refused it ────────────────────────▶ fails
    the operator stops ───────────────────────────▶ stays unfinished

A record whose next attempt could not begin before its deadline times out instead of waiting. Records that fail or time
out are returned: their worker calls their handlers, in the slot of the call.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from math import inf
from typing import Any

import trio

from .._core.groups import Half
from .._core.ledger import Ledger
from .._core.queue import Entry
from .._core.reading import Reading
from .._core.scheduler import Scheduler
from .._values.describe import describe
from .._values.exceptions import copied
from .attempts import Invoker
from .errors import AttemptTimeoutError, may_help_to_split
from .gates import Gates
from .tasks import BlockContext, Timer


class End(Enum):
    """How a call has ended without a result, if it has not raised."""

    EXPIRED = auto()  # the first deadline of its records has cancelled it. The error: what it raised meanwhile, or None
    REFUSED = auto()  # a gate has refused it, with this error
    CANCELLED = auto()  # the operator stops. The error: what it raised meanwhile, or None


@dataclass(frozen=True, slots=True)
class Failure:
    """A record without a result.

    Args:
        entry: The record.
        error: Why it has failed. None: it has timed out.
        cause: Why it times out: see `Invoker.replace`.
    """

    entry: Entry
    error: Exception | None = None
    cause: Exception | None = None


@dataclass(eq=False)
class Ends:
    """Ends the attempts of the records of an operator.

    Args:
        ledger: The state of the records.
        scheduler: Takes the records that are called again.
        invoker: Checks results, and knows which records are called again.
        timer: Woken at the ends of backoffs.
        context: That of the operator's block. An attempt that has changed it hands it on to the next one.
        gates: Those to which the ends of calls are reported, or None.
    """

    ledger: Ledger
    scheduler: Scheduler
    invoker: Invoker
    timer: Timer
    context: BlockContext
    gates: Gates | None

    def __post_init__(self) -> None:
        self._retries = self.invoker.retries
        self._grouping = self.scheduler.grouping
        self._has_groups = self._grouping.size > 0

    def end(
        self, call: Entry, result: Any, end: End | Reading | None, error: Exception | None, now: float
    ) -> list[Failure]:
        """End the attempt of each record of a call.

        Args:
            call: The record, or the group of records.
            result: What the function has returned. Of a group: a list of results.
            end: How the call has ended without a result, or what it has raised.
            error: See `End`.
            now: The time.

        Returns:
            The records without a result, which keep the slot of the call.
        """
        if end is None:
            return self._end_returned(call, result, now)
        if isinstance(end, Reading):
            return self._end_raised(call, end, now)
        if end is End.EXPIRED:
            return self._end_expired(call, error, now)
        if error is not None:
            return [*map(Failure, call.records, _one_for_each(error, call))]
        for entry in call.records:
            if not entry.is_done and not self.ledger.waits_for_retry(entry):
                self.ledger.cancel(entry, now)
        return []

    def _end_returned(self, call: Entry, result: Any, now: float) -> list[Failure]:
        if not self._has_groups:
            return _found([self._end_result(call, call, result, now)])
        return _found(self._end_result(call, *each, now) for each in zip(call.records, result, strict=True))

    def _end_result(self, call: Entry, entry: Entry, result: Any, now: float) -> Failure | None:
        if self._has_groups and isinstance(result, Exception):  # the failed attempt of this record alone
            self.ledger.fail_attempt(entry, result)
            return self._end_failed(call, entry, result, Reading(result), now, draw=self._retries.draw())
        wait = None
        try:
            self.invoker.check_result(result)
            if self._retries.checks_results:
                wait = self._retries.after_result(entry, result, splits=call.depth)
            outputs: Any = (
                (result,) if self.invoker.flatten is None or wait is not None else self.invoker.flatten(result)
            )
        except Exception as error:  # noqa: BLE001 - the user's predicate or iterable may raise anything
            return Failure(entry, error)
        if wait is not None:
            return self._retry(entry, wait, None, now, call.half)
        self.ledger.complete(entry, outputs, now)
        return None

    def _end_raised(self, call: Entry, reading: Reading, now: float) -> list[Failure]:
        """The records of a call that has raised are due for a retry at one instant."""
        error = reading.error
        assert isinstance(error, Exception)
        self.ledger.fail_attempt(call, error)
        errors: Sequence[Exception] = (error,)
        halves: Sequence[Half | None] = (None,)
        draw = self._retries.draw()
        if self._has_groups:
            self.invoker.name_group(error, call.records)
            # After a timeout, fewer records may take less time
            may_help = self._retries.is_timeout(error) or may_help_to_split(reading)
            halves = self._grouping.halves(call, may_help=may_help)
            errors = _one_for_each(error, call)
        longest_wait = inf if self.gates is None else self.gates.longest_wait
        failures = _found(
            self._end_failed(call, entry, each, reading, now, draw=draw, half=half, at_most=longest_wait)
            for entry, each, half in zip(call.records, errors, halves, strict=True)
        )
        self.scheduler.running.scopes.pop(call, None)
        return failures

    def _end_expired(self, call: Entry, cause: Exception | None, now: float) -> list[Failure]:
        """The first deadline of a record has ended the call. For the other records, their attempt has timed out."""
        draw = self._retries.draw()
        failures: list[Failure | None] = []
        for entry, half in zip(call.records, self._grouping.halves(call), strict=True):
            if entry.since + self.scheduler.running.timeout <= now:
                failures.append(Failure(entry, cause=cause))
                continue
            error = self._attempt_timeout(entry)
            error.__cause__ = cause
            self.ledger.fail_attempt(entry, error)
            failures.append(self._end_failed(call, entry, error, Reading(error), now, draw=draw, half=half))
        return _found(failures)

    def _attempt_timeout(self, entry: Entry) -> AttemptTimeoutError:
        timeout = self.scheduler.running.timeout
        error = AttemptTimeoutError(
            f"attempt {entry.attempts} gave no result for {describe(entry.value)}: the deadline of another record "
            f"ended their call, because that one has had its timeout of {timeout:g} s",
            timeout,
        )
        self._retries.mark_timeout(error)
        return error

    def _end_failed(
        self,
        call: Entry,
        entry: Entry,
        error: Exception,
        reading: Reading,
        now: float,
        *,
        draw: float,
        half: Half | None = None,
        at_most: float = inf,
    ) -> Failure | None:
        """The attempt of a record has failed.

        Args:
            call: The call.
            entry: The record.
            error: Its own copy of the error.
            reading: What the call has raised.
            now: The time.
            draw: As in `Retries.after_error`.
            half: The half in which the record is called again if it is not retried.
            at_most: Upper limit of a wait that the service requests, if the error was reported to the gates.
        """
        try:
            wait = self._retries.after_error(entry, error, reading, draw, splits=call.depth)
        except Exception as raised:  # noqa: BLE001 - the user's predicate may raise anything
            return Failure(entry, raised)
        if wait is not None:
            is_requested = reading.seconds is not None and wait <= reading.seconds
            return self._retry(entry, wait, error, now, call.half, at_most=at_most if is_requested else inf)
        if half is not None and self._retries.may_split(error):
            return self._retry(entry, 0.0, error, now, half)
        return Failure(entry, error)

    def _retry(
        self,
        entry: Entry,
        seconds: float,
        error: Exception | None,
        now: float,
        half: Half | None,
        *,
        at_most: float = inf,
    ) -> Failure | None:
        """Let another attempt follow, unless it would begin after the deadline: then the record times out now."""
        context = trio.lowlevel.current_task().context
        is_changed = not self._has_groups and self.context.is_changed_in(context)
        changed = context if is_changed else None
        if not self.scheduler.retry(entry, seconds, now, error, context=changed, half=half, at_most=at_most):
            return Failure(entry, cause=error)
        self._retries.account.withdraw()
        self.timer.wake_by(now + min(seconds, at_most))
        return None


def _one_for_each(error: Exception, call: Entry) -> Sequence[Exception]:
    """One copy of the error for each record, because each gets its own notes."""
    return [error, *(copied(error) for _ in call.records[1:])]


def _found(failures: Iterable[Failure | None]) -> list[Failure]:
    return [failure for failure in failures if failure is not None]
