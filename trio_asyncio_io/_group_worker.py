"""The workers of an operator whose calls are made for groups: one call, and an end for each of its records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import trio
from trio.lowlevel import enable_ki_protection

from ._core.describe import describe
from ._core.groups import Group, GroupLedger, GroupScheduler, Part
from ._core.queue import Entry
from ._errors import AttemptTimeoutError, copied, is_of_its_records
from ._worker import Worker

__all__ = ["GroupWorker"]


@dataclass(frozen=True, slots=True)
class _Failure:
    """A record without a result.

    Args:
        entry: The record.
        error: Why it has failed. None: it has timed out.
        cause: Why it times out: see `Invoker.rescue`.
    """

    entry: Entry
    error: Exception | None = None
    cause: Exception | None = None


class GroupWorker(Worker):
    """A worker whose attempts are calls for groups. `_entry` is the running `Group`."""

    _ledger: GroupLedger
    _scheduler: GroupScheduler

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._ended: set[Entry] = set()  # the records that have a result, or wait for their retry
        self._failures: list[_Failure] = []

    def _next(self, now: float) -> Entry | None:
        """Ask the scheduler, as `Worker._next`. Groups wait for instants and for workers in any case."""
        group = super()._next(now)
        self._timer.wake_by(self._scheduler.wake_at())
        if group is not None:
            self._pool.dispatch()
        return group

    @property
    def _group(self) -> Group:
        """The running call."""
        assert isinstance(self._entry, Group)
        return self._entry

    # The end of a call

    @enable_ki_protection
    def _complete(self, result: Any) -> float | None:
        """A call has returned. Returns the current time; None: a deadline has expired, or a record has failed.

        A result that is an exception is the failed attempt of its record.
        """
        group, now = self._entry, self._current_time()
        assert isinstance(group, Group)
        if self._gates is not None:
            self._report(self._gates.completed, group)
        for entry, each in zip(group.records, result, strict=True):
            if isinstance(each, Exception):
                self._ledger.fail_attempt(entry, each)
                self._end_failed(entry, each, None, now, None)
            else:
                self._end_returned(entry, each, now)
        return self._leave(group, now)

    _complete_attempt = _complete

    @enable_ki_protection
    def _fail(self, error: Exception) -> None:
        """A call has raised, which fails the attempts of all its records. They are due for a retry at one instant."""
        if self._entry is None:  # not raised by user code
            raise error
        group = self._group
        self._ledger.fail_attempt(group, error)
        if self._gates is not None:
            error = self._report(self._gates.failed, group, error)
        self._invoker.name_group(error, group.records)
        now, draw = self._current_time(), None if self._retries is None else self._retries.draw()
        is_own_timeout = self._retries is not None and id(error) in self._retries.timeouts
        halves = self._halves_of(group, may_split=is_own_timeout or is_of_its_records(error))
        for entry, each, half in zip(group.records, self._errors(error, group), halves, strict=True):
            self._end_failed(entry, each, draw, now, half)
        self._leave(group, now)

    def _halves_of(self, group: Group, *, may_split: bool = True) -> Sequence[Part | None]:
        """For each record, the half in which it is called again if it is not retried. None: it is not called again."""
        number = len(group.records)
        if not self._invoker.splits or not may_split or number == 1:
            return (None,) * number
        middle = (number + 1) // 2
        return (Part(group.splits + 1),) * middle + (Part(group.splits + 1),) * (number - middle)

    def _end_returned(self, entry: Entry, result: Any, now: float) -> None:
        try:
            wait = (
                None if self._retries is None else self._retries.after_result(entry, result, splits=self._group.splits)
            )
            outputs: Any = (result,) if self._flatten is None or wait is not None else self._flatten(result)
        except Exception as error:  # noqa: BLE001 - the user's predicate or iterable may raise anything
            self._failures.append(_Failure(entry, error))
            return
        if wait is not None:
            self._back_off(entry, wait, None, now, self._group.part)
            return
        self._ledger.complete(entry, outputs, now)
        self._ended.add(entry)
        if self._has_work.is_awaited:
            self._emitter.emit(now)

    def _end_failed(self, entry: Entry, error: Exception, draw: float | None, now: float, half: Part | None) -> None:
        wait, retries = None, self._retries
        if retries is not None:
            try:
                wait = retries.after_error(entry, error, draw, splits=self._group.splits)
            except Exception as raised:  # noqa: BLE001 - the user's predicate may raise anything
                self._failures.append(_Failure(entry, raised))
                return
        if wait is not None:
            self._back_off(entry, wait, error, now, self._group.part)
        elif half is not None and (retries is None or retries.may_split(error)):
            self._back_off(entry, 0.0, error, now, half)
        else:
            self._failures.append(_Failure(entry, error))

    def _back_off(self, entry: Entry, seconds: float, error: Exception | None, now: float, part: Part | None) -> None:
        if self._scheduler.retry(entry, None, seconds, now, has_raised=error is not None, part=part):
            if self._retries is not None:
                self._retries.withdraw()
            self._ended.add(entry)
            self._timer.wake_by(now + seconds)
        else:
            self._failures.append(_Failure(entry, cause=error))

    def _leave(self, group: Entry, now: float) -> float | None:
        """Free the slot, unless a record needs its handler. Returns as `_complete`."""
        if self._failures:
            return None
        self._end_call(now)
        return None if self._running.pop(group, None) is None else now

    def _end_call(self, now: float) -> None:
        self._entry = None
        self._ended.clear()
        self._ledger.end_call(now)

    def _errors(self, error: Exception, group: Entry) -> Iterable[Exception]:
        """The error of a call, for each of its records, because they get different notes."""
        errors = [error, *(copied(error) for _ in group.records[1:])]
        if self._retries is not None and id(error) in self._retries.timeouts:
            self._retries.timeouts |= {id(each): each for each in errors}
        return errors

    # Records without a result

    def _cancel(self) -> None:
        group = self._entry
        if group is None:
            return
        if self._gates is not None:
            self._report(self._gates.cancelled, group)
        self._running.pop(group, None)
        now = trio.current_time()
        for entry in group.records:
            if entry not in self._ended:
                self._ledger.cancel(entry, now)
        self._end_call(now)

    async def _rescue(self, entry: Entry) -> bool:
        """Settle the records of a group without results, one after another in its slot. Returns as `Worker._rescue`."""
        group = entry
        self._running.pop(group, None)
        if not self._failures and self._error is None:
            self._expire(self._group)
        failures = self._failures or self._refused(group)
        self._failures, self._error, self._cause = [], None, None
        self._pool.dispatch()  # a gate may have changed, and this worker is busy
        self._entry = None
        self._ended.clear()
        try:
            return await self._replace(failures)
        finally:
            self._ledger.end_call(trio.current_time())

    def _expire(self, group: Group) -> None:
        """The first deadline of a record has ended the call. For the other records, their attempt has timed out."""
        if self._gates is not None:
            self._report(self._gates.expired, group)
        now, draw = self._current_time(), None if self._retries is None else self._retries.draw()
        for entry, half in zip(group.records, self._halves_of(group), strict=True):
            if entry.since + self._timeout <= now:
                self._failures.append(_Failure(entry, cause=self._cause))
                continue
            error = AttemptTimeoutError(
                f"attempt {entry.attempts} gave no result for {describe(entry.value)}: the deadline of another record "
                f"ended their call, because that one has had its timeout of {self._timeout:g} s",
                self._timeout,
            )
            error.__cause__ = self._cause
            if self._retries is not None:
                self._retries.timeouts[id(error)] = error
            self._ledger.fail_attempt(entry, error)
            self._end_failed(entry, error, draw, now, half)

    def _refused(self, group: Entry) -> list[_Failure]:
        """A gate has refused the call, or it has raised while the operator stopped."""
        assert self._error is not None
        errors = self._errors(self._error, group)
        return [_Failure(entry, error) for entry, error in zip(group.records, errors, strict=True)]

    async def _replace(self, failures: list[_Failure]) -> bool:
        if trio.current_effective_deadline() == -float("inf") and any(each.error is not None for each in failures):
            self._end_while_stopping(failures)
            return False
        for each in failures:
            self._invoker.end(each.entry, each.error)
        while failures:
            each = failures[0]
            try:
                results = await self._invoker.replace(each.entry, each.error, each.cause)
            except Exception as final:  # noqa: BLE001 - user code may raise anything
                self._abandon(failures)
                self._pool.on_failure(final)
                return False
            except BaseException:
                self._abandon(failures)  # already counted as failed or timed out
                raise
            del failures[0]
            self._ledger.finish(each.entry, results, trio.current_time())
            self._emitter.emit()
        return True

    def _end_while_stopping(self, failures: list[_Failure]) -> None:
        for each in failures:
            if each.error is None:
                self._invoker.end(each.entry, None)
                self._ledger.abandon(each.entry)
            else:
                self._fail_while_stopping(each.entry, each.error)

    def _abandon(self, failures: list[_Failure]) -> None:
        for each in failures:
            self._ledger.abandon(each.entry)
