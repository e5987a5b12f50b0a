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

from .describe import describe
from .ledger import Ledger
from .observer import Meter, Observer
from .options import Options
from .queue import CompletionOrder, Entry, InputOrder, KeyOrder, Order

__all__ = ["ledger_for"]

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


# By step of the ledger: the hooks that follow, each with its arguments after `sequence` and `element`
HOOKS: Final[dict[str, tuple[tuple[str, Details], ...]]] = {
    "accept": (("accepted", _nothing),),
    "accept_held": (),  # it accepts
    "wait_for_gate": (("held_back", _nothing),),
    "wait_for_gate_of_key": (("held_back", _nothing),),
    "wait_for_slot": (("waits_for_slot", _nothing),),
    "start": (("started", _nothing),),
    "start_reserved": (("started", _nothing),),
    "start_after_wait": (("started", _nothing),),
    "fail_attempt": (("attempt_failed", _error),),
    "back_off": (("backing_off", _backoff),),
    "retry": (("retried", _next_attempt),),
    "complete": (("completed", _end), ("slot_freed", _nothing)),
    "time_out": (("timed_out", _end),),
    "fail": (("failed", _failure),),
    "fail_after_timeout": (("failed", _failure),),
    "finish": (("slot_freed", _nothing),),
    "cancel": (("cancelled", _end), ("slot_freed", _nothing)),
    "cancel_retry": (("cancelled", _end), ("slot_freed", _nothing)),
    "abandon": (("slot_freed", _nothing),),
    "poll": (("dequeued", _nothing),),
    "receive": (("emitted", _nothing),),
    "receive_dead_letter": (("emitted", _nothing),),
}


def _its_records(ledger: Ledger, entry: Entry, *_: Any) -> Sequence[Entry]:  # noqa: ARG001
    return entry.records


def _next_to_leave(ledger: Ledger) -> Sequence[Entry]:
    return (ledger.leaving[0],)


# By step: the entries that it concerns, if they are not the records of its first argument. None: what it returns
_SUBJECTS: Final[dict[str, Callable[..., Sequence[Entry]] | None]] = {
    "accept": None,
    "start": None,
    "poll": None,
    "receive": _next_to_leave,
}

# The ends of an invocation
ENDS: Final = frozenset({"completed", "timed_out", "failed", "cancelled"})
_OF_WATERMARKS: Final = {"accepted": "watermark_accepted", "dequeued": None, "emitted": "watermark_emitted"}


class Observation:
    """The calls of one observer's hooks for one operator.

    After a hook has raised, only the end of an invocation whose start was observed is still reported, so that the
    observer can release what it holds for that invocation.
    """

    def __init__(self, observer: Observer, *, has_groups: bool) -> None:
        self._observer = observer
        self._contexts: dict[int, Context] | None = {} if has_groups else None  # by sequence
        self._has_failed = False
        self._started: set[int] = set()  # sequences of the invocations whose end will be reported

    def follow(self, ledger: Ledger, options: Options) -> None:
        """Call the hooks after each step of this ledger from now on. Steps without a needed hook stay as they are."""
        steps, needed, complete = vars(ledger), self._needed(), ledger.complete
        if self._contexts is not None:
            steps["start_after_wait"] = self._then(
                ledger.start_after_wait,
                lambda group, *_: ("grouped", tuple(record.sequence for record in group.records)),
            )
        for name, hooks in HOOKS.items():
            if followed := [each for each in hooks if each[0] in needed]:
                steps[name] = self._followed(getattr(ledger, name), followed, _SUBJECTS.get(name, _its_records), ledger)
        if isinstance(self._observer, Meter):
            steps["complete"] = self._followed_if_slow(complete, self._observer, ledger)
        counted = self._then(ledger.begin_run, lambda _: ("run_counted", ledger.counters))
        steps["begin_run"] = self._then(counted, lambda _: ("run_started", options))
        steps["end_run"] = self._then(
            ledger.end_run, lambda clocks: ("run_ended", ledger.statistics(), ledger.verdict(lambda: clocks))
        )

    def _needed(self) -> set[str]:
        """The hooks that the observer overrides, and those that these depend on."""
        overridden = {name for name, empty in getmembers(Observer, isfunction) if self._overrides(name, empty)}
        needed = overridden | {hook for hook, of_watermark in _OF_WATERMARKS.items() if of_watermark in overridden}
        if needed & ENDS and not isinstance(self._observer, Meter):
            needed |= {"started", *ENDS}  # so that each end is reported once, also after a hook has raised
        if self._contexts is not None:
            needed |= {"started", "dequeued", "emitted"}  # between them, a record has a context
        return needed

    def _overrides(self, name: str, empty: Callable[..., None]) -> bool:
        return getattr(getattr(self._observer, name), "__func__", None) is not empty

    def _followed(
        self,
        step: Callable[..., Any],
        hooks: Sequence[tuple[str, Details]],
        subjects: Callable[..., Sequence[Entry]] | None,
        ledger: Ledger,
    ) -> Callable[..., Any]:
        if self._contexts is None and len(hooks) == 1 and (subjects is None or subjects is _its_records):
            return self._followed_by_one(step, *hooks[0], returns=subjects is None)

        @wraps(step)
        def take(*arguments: Any) -> Any:
            entries = () if subjects is None else subjects(ledger, *arguments)
            # Before the step, which changes the entries
            details = [[of(entry, *arguments[1:]) for _, of in hooks] for entry in entries]
            result = step(*arguments)
            if subjects is None and result is not None:
                entries = result if isinstance(result, list) else (result,)
                details = [[of(entry) for _, of in hooks] for entry in entries]
            for entry, of_entry in zip(entries, details, strict=True):
                for (hook, _), of_hook in zip(hooks, of_entry, strict=True):
                    self._report(hook, entry, of_hook)
            return result

        return take

    def _followed_by_one(
        self, step: Callable[..., Any], hook: str, details: Details, *, returns: bool
    ) -> Callable[..., Any]:
        """The same as `_followed` for one hook and a step of one record, without lists."""
        started, is_end, is_start = self._started, hook in ENDS, hook == "started"
        method = getattr(self._observer, hook)

        def report(entry: Entry, found: tuple[Any, ...]) -> None:
            if entry.is_watermark:
                self._report(hook, entry, found)
                return
            sequence = entry.sequence
            if is_start and entry.attempts:
                return
            if self._has_failed and not (is_end and sequence in started):
                return
            if is_start:
                started.add(sequence)
            elif is_end:
                started.discard(sequence)
            try:
                method(sequence, entry.element, *found)
            except BaseException:  # noqa: BLE001 - the operator does not depend on the user's observer
                self._log_failure(hook)

        if returns:

            @wraps(step)
            def take(*arguments: Any) -> Any:
                result = step(*arguments)
                if result is not None:
                    for entry in result if isinstance(result, list) else (result,):
                        report(entry, details(entry))
                return result

        else:

            @wraps(step)
            def take(entry: Entry, *arguments: Any) -> Any:
                found = [(each, details(each, *arguments)) for each in entry.records]
                result = step(entry, *arguments)
                for each, of_each in found:
                    report(each, of_each)
                return result

        return take

    def _followed_if_slow(self, complete: Callable[..., None], meter: Meter, ledger: Ledger) -> Callable[..., None]:
        followed = self._followed(complete, [("completed", _end)], _its_records, ledger)

        @wraps(complete)
        def take(entry: Entry, results: Sequence[Any], now: float) -> None:
            (followed if now - entry.since > meter.slow_from else complete)(entry, results, now)

        return take

    def _then(self, step: Callable[..., None], hook: Callable[..., tuple[Any, ...]]) -> Callable[..., None]:
        @wraps(step)
        def take(*arguments: Any) -> None:
            step(*arguments)
            if not self._has_failed:
                self._call(*hook(*arguments))

        return take

    def _report(self, hook: str, entry: Entry, details: tuple[Any, ...]) -> None:
        name = _OF_WATERMARKS[hook] if entry.is_watermark else hook
        if name is None or (hook == "started" and entry.attempts):  # a retry
            return
        if hook == "started" and not self._has_failed:
            self._started.add(entry.sequence)
        if not self._has_failed or (hook in ENDS and entry.sequence in self._started):
            self._context_of(entry, hook)(self._call, name, entry.sequence, entry.element, *details)
        if hook in ENDS:
            self._started.discard(entry.sequence)

    def _context_of(self, entry: Entry, hook: str) -> Callable[..., Any]:
        """Runs a hook in the context of its record. A call for a group has many records, so each has its own."""
        if self._contexts is None or entry.is_watermark:
            return _here
        if hook == "started":
            self._contexts[entry.sequence] = copy_context()
        context = self._contexts.get(entry.sequence)
        if hook in {"dequeued", "emitted"}:
            self._contexts.pop(entry.sequence, None)
        return _here if context is None else context.run

    def _call(self, hook: str, *arguments: Any) -> None:
        try:
            getattr(self._observer, hook)(*arguments)
        except BaseException:  # noqa: BLE001 - the operator does not depend on the user's observer, whatever it raises
            self._log_failure(hook)

    def _log_failure(self, hook: str) -> None:
        if not self._has_failed:
            observer = describe(self._observer)
            _log.exception("%s of the observer %s raised; nothing more is reported to it", hook, observer)
        self._has_failed = True


def _here(function: Callable[..., None], *arguments: Any) -> None:
    function(*arguments)


def ledger_for(options: Options, key: Callable[[Any], Hashable] | None) -> Ledger:
    """A new ledger and its order, observed if the options have an observer. `key` replaces the key of the options."""
    counts = options.on_error == "dead_letter"
    ledger = Ledger(
        _order_for(options, key),
        options.bound,
        options.restore,
        capacity=options.capacity,
        group=options.group or 0,
        counts_dead_letters=counts,
    )
    ledger.flow.is_ordered = options.mode == "ordered"
    if options.observer is not None:
        has_contexts = options.group is not None and not isinstance(options.observer, Meter)
        Observation(options.observer, has_groups=has_contexts).follow(ledger, options)
    return ledger


def _order_for(options: Options, key: Callable[[Any], Hashable] | None) -> Order:
    if key is not None:
        return KeyOrder(key)
    return InputOrder() if options.mode == "ordered" else CompletionOrder()
