"""Attempts: the calls for one element, up to the one whose outcome counts.

Each layer is a function around a function, entry -> awaitable of the result: a call, announced to `flush`, timed,
observed, repeated. A layer exists only if an option needs it, so an option that is not used costs nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from inspect import isawaitable
from math import inf
from random import Random
from types import CoroutineType
from typing import Any, TypeAlias

import trio
from trio.lowlevel import disable_ki_protection, enable_ki_protection

from ._boundary import interruptible
from ._core.describe import describe
from ._core.ledger import Ledger
from ._core.notes import Notes
from ._core.options import Options
from ._core.queue import Entry
from ._core.retry_budget import BudgetAccount
from ._errors import AttemptTimeoutError, NotAsyncError
from ._gatekeeper import Gatekeeper
from ._slots import Slots

__all__ = ["Call", "attempts_of", "flusher_of"]

Call: TypeAlias = Callable[[Entry], Awaitable[Any]]

# By id: the timeouts of this operator's attempts. The function may raise those of an operator inside it.
Timeouts: TypeAlias = dict[int, AttemptTimeoutError]

_log = logging.getLogger("trio_asyncio_io")


def attempts_of(
    function: Any,
    options: Options,
    ledger: Ledger,
    notes: Notes,
    *,
    gates: Gatekeeper | None = None,
    slots: Slots | None = None,
) -> Call:
    """All calls for one element: entry -> awaitable of the function's result. The caller is open to interrupts."""
    retry = options.retry
    call = _once(function.invoke)
    flush = flusher_of(function, ledger)
    if flush is not None:
        call = _flushing(call, flush, ledger)
    if gates is not None:
        call = gates.admissions.around(call)
    if retry is None and options.observer is None:
        return call
    call = _interruptible(call)
    timeouts: Timeouts = {}
    if retry is not None and retry.attempt_timeout < inf:
        call = _timed(call, retry.attempt_timeout, options.timeout, timeouts)
    if options.observer is not None:
        call = _observed(call, ledger)
    if retry is None:
        return call
    call = _Repeated(call, options, ledger, timeouts=timeouts, notes=notes, gates=gates, slots=slots)
    return call if slots is None else slots.around(call)


def flusher_of(function: Any, ledger: Ledger) -> Callable[[], None] | None:
    """Calls the function's `flush` if no other invocation can start for a while. None without a `flush`."""
    flush = getattr(function, "flush", None)
    if not callable(flush):
        return None

    def call() -> None:
        if ledger.counters.running and ledger.has_nothing_to_start():
            try:
                flush()
            except Exception:  # noqa: BLE001 - the scheduler calls this, so nobody could catch it
                _log.exception("flush() of the function raised")

    return call


def _once(invoke: Callable[[Any], Awaitable[Any]]) -> Call:
    def call(entry: Entry) -> Awaitable[Any]:
        entry.attempts += 1
        awaitable = invoke(entry.value)  # `awaitable_from` without its call
        if type(awaitable) is not CoroutineType and not isawaitable(awaitable):
            raise NotAsyncError.for_result(invoke, awaitable)
        return awaitable

    return call


def _flushing(once: Call, flush: Callable[[], None], ledger: Ledger) -> Call:
    def call(entry: Entry) -> Awaitable[Any]:
        if ledger.has_nothing_to_start():  # flush in the next scheduler pass, when this call also waits for its group
            trio.lowlevel.current_trio_token().run_sync_soon(flush, idempotent=True)
        return once(entry)

    return call


def _interruptible(once: Call) -> Call:
    """The call below layers that are protected from interrupts."""

    @disable_ki_protection
    async def call(entry: Entry) -> Any:
        return await once(entry)

    return call


async def _yield_to_deadline(entry: Entry, seconds: float) -> None:
    """Wait for the element's deadline if it is due: of two timeouts at one instant, it has precedence."""
    if trio.current_time() >= entry.since + seconds:
        await trio.sleep_forever()


def _timed(once: Call, seconds: float, timeout: float, timeouts: Timeouts) -> Call:
    @enable_ki_protection
    async def call(entry: Entry) -> Any:
        with trio.move_on_after(seconds):
            return await once(entry)
        await _yield_to_deadline(entry, timeout)
        what = f"attempt {entry.attempts} gave no result for {describe(entry.value)}"
        error = AttemptTimeoutError(f"{what} within its attempt_timeout of {seconds:g} s", seconds)
        timeouts[id(error)] = error
        raise error

    return call


def _observed(once: Call, ledger: Ledger) -> Call:
    @enable_ki_protection
    async def call(entry: Entry) -> Any:
        try:
            return await once(entry)
        except Exception as error:
            ledger.attempt_failed(entry, error)
            raise

    return call


class _Repeated:
    """Repeats a call as the retry strategy decides. In a loop, so two attempts of one element never run at once."""

    def __init__(
        self,
        once: Call,
        options: Options,
        ledger: Ledger,
        *,
        timeouts: Timeouts,
        notes: Notes,
        gates: Gatekeeper | None,
        slots: Slots | None,
    ) -> None:
        strategy = options.retry
        assert strategy is not None
        self._once = once
        self._ledger = ledger
        self._timeouts = timeouts
        self._notes = notes
        self._max_retries = strategy.max_retries
        self._retries_result = interruptible(strategy.retries_result)
        self._retries_exception = interruptible(strategy.retries_exception)
        self._wait = interruptible(strategy.wait)
        self._account = BudgetAccount(strategy.budget, options.slots)
        self._random = Random()
        self._timeout = options.timeout
        self._gates = gates
        self._slots = slots

    @enable_ki_protection
    async def __call__(self, entry: Entry) -> Any:
        self._account.deposit()
        while True:
            try:
                result = await self._once(entry)
            except Exception as error:
                if self._gates is not None:
                    self._gates.admissions.failed(entry, error)
                if not self._is_retryable(error, entry):
                    raise
                if not self._may_retry():
                    self._notes.add(error, "it was not retried: the operator's retry budget is used up")
                    raise
                wait = self._wait(entry.attempts, self._random.random(), error)
            else:
                if self._gates is not None:
                    self._gates.admissions.passed(entry)
                if entry.attempts > self._max_retries or not self._retries_result(result) or not self._may_retry():
                    return result
                wait = self._wait(entry.attempts, self._random.random())
            await self._back_off(entry, wait)

    async def _back_off(self, entry: Entry, seconds: float) -> None:
        self._ledger.back_off(entry, seconds)
        if self._gates is not None:
            self._gates.admissions.rest(entry)
        if self._slots is None:
            await trio.sleep(seconds)
        else:
            await self._slots.sleep(entry, seconds)
        await _yield_to_deadline(entry, self._timeout)
        if self._gates is not None:
            await self._gates.admit_again(entry)
        self._ledger.retry(entry)

    def _is_retryable(self, error: Exception, entry: Entry) -> bool:
        is_own_timeout = self._timeouts.pop(id(error), None) is not None
        if entry.attempts > self._max_retries or isinstance(error, NotAsyncError):
            return False
        return is_own_timeout or self._retries_exception(error)

    def _may_retry(self) -> bool:
        if self._account.withdraw():
            return True
        self._ledger.deny_retry()
        return False
