"""The observation: calls the user's observer after each step of a ledger.

The ledger takes the step and accounts for it first, with the same arguments as without an observer, and only then are
the hooks called. So an observer can neither miss a step that is in the table nor change an account.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Sequence
from contextvars import Context, copy_context
from functools import wraps
from inspect import getmembers, isfunction
from typing import Any, Final, TypeAlias

from .._values.describe import describe
from .ledger import Ledger
from .observer import Meter, Observer
from .options import Options
from .queue import CompletionOrder, Entry, InputOrder, KeyOrder, Order

_log = logging.getLogger("trio_asyncio_io")

Details: TypeAlias = Callable[..., tuple[Any, ...]]


def _nothing(entry: Entry, *_: Any) -> tuple[Any, ...]:  # noqa: ARG001 - as all of these
    return ()


def _next_attempt(entry: Entry, *_: Any) -> tuple[Any, ...]:
    return (entry.attempts + 1,)


def _error(entry: Entry, error: Exception) -> tuple[Any, ...]:
    return entry.attempts, error


def _backoff(entry: Entry, seconds: float, now: float) -> tuple[Any, ...]:  # noqa: ARG001
    return entry.attempts, seconds


def _end(entry: Entry, *arguments: Any) -> tuple[Any, ...]:
    return entry.attempts, arguments[-1] - entry.since


def _failure(entry: Entry, error: Exception, now: float) -> tuple[Any, ...]:
    return entry.attempts, now - entry.since, error


# By hook: its arguments after `sequence` and `element`, and the steps of the ledger that it follows. Of two hooks that
# follow one step, the upper one comes first
HOOKS: Final[dict[str, tuple[Details, tuple[str, ...]]]] = {
    "accepted": (_nothing, ("accept",)),
    "held_back": (_nothing, ("wait_for_gate",)),
    "waits_for_slot": (_nothing, ("wait_for_slot",)),
    "started": (_nothing, ("start", "start_first", "start_call")),
    "attempt_failed": (_error, ("fail_attempt",)),
    "backing_off": (_backoff, ("back_off",)),
    "retried": (_next_attempt, ("retry",)),
    "timed_out": (_end, ("time_out",)),
    "completed": (_end, ("complete",)),
    "failed": (_failure, ("fail", "fail_after_timeout")),
    "cancelled": (_end, ("cancel", "cancel_retry")),
    "slot_freed": (_nothing, ("complete", "finish", "cancel", "cancel_retry", "abandon")),
    "dequeued": (_nothing, ("poll",)),
    "emitted": (_nothing, ("receive", "receive_dead_letter")),
}

# Steps that concern the entries that they return, if any. Others concern the records of their first argument
_RETURNS_ENTRIES: Final = frozenset({"accept", "start", "poll"})

_OF_WATERMARKS: Final = {"accepted": "watermark_accepted", "dequeued": None, "emitted": "watermark_emitted"}


class Observation:
    """The calls of one observer's hooks for one operator, until one of them raises."""

    def __init__(self, observer: Observer, *, has_groups: bool) -> None:
        self._observer = observer
        self._contexts: dict[int, Context] | None = {} if has_groups else None  # sequence -> context
        self._has_failed = False

    def follow(self, ledger: Ledger, options: Options) -> None:
        """Call the hooks after each step of this ledger from now on. Steps without a needed hook stay as they are."""
        steps, needed, complete = vars(ledger), self._needed(), ledger.complete
        if self._contexts is not None:
            steps["start_call"] = self._then(
                ledger.start_call,
                lambda group, *_: ("grouped", tuple(record.sequence for record in group.records)),
            )
        for hook, (details, names) in HOOKS.items():
            if hook in needed:
                for name in names:
                    steps[name] = self._followed(ledger, name, hook, details)
        if isinstance(self._observer, Meter):
            steps["complete"] = self._followed_if_slow(complete, ledger.complete, self._observer)
        counted = self._then(ledger.begin_run, lambda _: ("run_counted", ledger.counters))
        steps["begin_run"] = self._then(counted, lambda _: ("run_started", options))
        steps["end_run"] = self._then(
            ledger.end_run, lambda clocks: ("run_ended", ledger.statistics(), ledger.verdict(lambda: clocks))
        )

    def _needed(self) -> set[str]:
        """The hooks that the observer overrides, and those that these depend on."""
        overridden = {name for name, empty in getmembers(Observer, isfunction) if self._overrides(name, empty)}
        needed = overridden | {hook for hook, of_watermark in _OF_WATERMARKS.items() if of_watermark in overridden}
        if self._contexts is not None:
            needed |= {"started", "dequeued", "emitted"}  # between them, a record has a context
        return needed

    def _overrides(self, name: str, empty: Callable[..., None]) -> bool:
        return getattr(getattr(self._observer, name), "__func__", None) is not empty

    def _followed(self, ledger: Ledger, name: str, hook: str, details: Details) -> Callable[..., Any]:
        """A step, and after it a hook for each entry that it concerns."""
        step, report = getattr(ledger, name), self._reporter(hook)
        if name in _RETURNS_ENTRIES:

            @wraps(step)
            def take_with_result(*arguments: Any) -> Any:
                result = step(*arguments)
                if result is not None:
                    for entry in result if isinstance(result, list) else (result,):
                        report(entry, details(entry))
                return result

            return take_with_result
        if name == "receive":

            @wraps(step)
            def take_next(*arguments: Any) -> Any:
                entry = ledger.leaving[0]
                result = step(*arguments)
                report(entry, details(entry))
                return result

            return take_next

        @wraps(step)
        def take(call: Entry, *arguments: Any) -> Any:
            found = [(entry, details(entry, *arguments)) for entry in call.records]  # the step changes the entries
            result = step(call, *arguments)
            for entry, of_entry in found:
                report(entry, of_entry)
            return result

        return take

    def _reporter(self, hook: str) -> Callable[[Entry, tuple[Any, ...]], None]:
        """Calls a hook for an entry with these arguments, unless nothing is reported to it any more."""
        contexts, is_start = self._contexts, hook == "started"
        names = hook, _OF_WATERMARKS.get(hook)
        methods: list[Any] = [name and getattr(self._observer, name) for name in names]

        def report(entry: Entry, found: tuple[Any, ...]) -> None:
            method, sequence = methods[entry.is_watermark], entry.sequence
            if method is None or self._has_failed or (is_start and entry.attempts):  # a retry
                return
            try:
                context = None if contexts is None or entry.is_watermark else self._context_of(sequence, hook)
                if context is None:
                    method(sequence, entry.element, *found)
                else:
                    context.run(method, sequence, entry.element, *found)
            except BaseException:  # noqa: BLE001 - the operator does not depend on the user's observer
                self._log_failure(names[entry.is_watermark])

        return report

    def _followed_if_slow(
        self, complete: Callable[..., None], followed: Callable[..., None], meter: Meter
    ) -> Callable[..., None]:
        @wraps(complete)
        def take(entry: Entry, results: Sequence[Any], now: float) -> None:
            (followed if now - entry.since > meter.slow_from else complete)(entry, results, now)

        return take

    def _then(self, step: Callable[..., None], hook: Callable[..., tuple[Any, ...]]) -> Callable[..., None]:
        @wraps(step)
        def take(*arguments: Any) -> None:
            step(*arguments)
            if not self._has_failed:
                name, *found = hook(*arguments)
                try:
                    getattr(self._observer, name)(*found)
                except BaseException:  # noqa: BLE001 - as in `_reporter`
                    self._log_failure(name)

        return take

    def _context_of(self, sequence: int, hook: str) -> Context | None:
        """That of a record with a hook. A call for a group has many records, so each has its own."""
        contexts = self._contexts
        assert contexts is not None
        if hook == "started":
            contexts[sequence] = copy_context()
        return contexts.pop(sequence, None) if hook in {"dequeued", "emitted"} else contexts.get(sequence)

    def _log_failure(self, hook: str | None) -> None:
        if not self._has_failed:
            observer = describe(self._observer)
            _log.exception("%s of the observer %s raised; nothing more is reported to it", hook, observer)
        self._has_failed = True


def ledger_for(options: Options, key: Callable[[Any], Hashable] | None) -> Ledger:
    """A new ledger and its order, observed if the options have an observer. `key` replaces the key of the options."""
    order: Order = InputOrder() if options.mode == "ordered" else CompletionOrder()
    ledger = Ledger(
        order if key is None else KeyOrder(key),
        options.bound,
        options.restore,
        capacity=options.capacity,
        group=options.group or 0,
        counts_dead_letters=options.on_error == "dead_letter",
    )
    ledger.flow.is_ordered = options.mode == "ordered"
    if options.observer is not None:
        has_contexts = options.group is not None and not isinstance(options.observer, Meter)
        Observation(options.observer, has_groups=has_contexts).follow(ledger, options)
    return ledger
