"""The gates of an operator, in Trio: their clocks, their users, and the ends of calls.

The scheduler decides which call may start; see `_core.admission`. This module reports to the gates how calls end.

Operators that use one gate, by object or by class and name, share its `GateFamily`: the copies that a `PerKey` makes of
it, or the gate itself. Each of them is a `GateInUse`, which notifies its users when it changes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from itertools import repeat
from math import inf
from types import TracebackType
from typing import Final
from weakref import ref

import trio
from trio.lowlevel import RunVar, enable_ki_protection

from ._calls import WeighedCall, present_call
from ._core.admission import Admission, KeyGates, Line, Passage, Weights, weights_of_call
from ._core.gate import CANCELLED, CURRENT_CALL, OK, Copies, Gate, Outcome, PerKey, expired, identity_of
from ._core.notes import set_on
from ._core.queue import Entry
from ._errors import Reading, outcome_for
from ._tasks import dict_of_run

__all__ = ["Gates"]

FEW = 64  # with fewer keys, a search for those without calls is not worth its cost
MAX_UNUSED = 10_000  # keys without calls whose gates are kept for their state


@dataclass(eq=False, frozen=True, slots=True)
class User:
    """An operator that uses a gate.

    Args:
        change: Called when the gate may admit a call earlier than it said.
        running: Returns the number of the operator's running calls.
    """

    change: Callable[[], None]
    running: Callable[[], int]


class GateInUse:
    """A gate in the present Trio run.

    Args:
        gate: The gate.
        on_idle_change: Called when the gate has become idle, or is idle no longer.

    Attributes:
        gate: As given.
        offset: The gate's own time minus Trio's.
        users: The operators that use the gate now.
    """

    __slots__ = ("_on_idle_change", "_was_idle", "gate", "offset", "users")

    def __init__(self, gate: Gate, on_idle_change: Callable[[], None]) -> None:
        self.gate = gate
        self.offset = offset_of(gate)
        self.users: set[User] = set()
        self._on_idle_change = on_idle_change
        self._was_idle = gate.is_idle

    def has_calls(self) -> bool:
        """Whether an operator that uses the gate has a running call."""
        return any(user.running() for user in self.users)

    def notify_others(self) -> None:
        """The gate has changed. Its only user knows that already."""
        if self.gate.is_idle != self._was_idle:
            self._was_idle = self.gate.is_idle
            self._on_idle_change()
        if len(self.users) > 1:
            for user in self.users:
                user.change()


class _Itself(Copies):
    """A gate for all calls: itself in place of copies, under the key None."""

    def __missing__(self, key: Hashable) -> Gate:
        return self.gate


class GateFamily:
    """The copies of one gate, by key, in the present Trio run. All operators that use the family share it.

    Args:
        copies: The gates, by key. Those of earlier runs are among them.

    Attributes:
        gate: The gate that is copied.
        users: Called when the family has become idle, or is idle no longer.
    """

    def __init__(self, copies: Copies) -> None:
        self.gate = copies.gate
        self.users: set[Callable[[], None]] = set()
        self._copies = copies
        self._in_use: dict[Hashable, GateInUse] = {}
        self._was_idle = self.is_idle

    @property
    def is_idle(self) -> bool:
        """Whether no call has to be checked."""
        return self.gate.is_idle and not self._copies.busy

    def use(self, key: Hashable, user: User) -> GateInUse:
        """The gate of this key."""
        in_use = self._in_use.get(key)
        if in_use is None:
            in_use = self._in_use[key] = GateInUse(self._copies[key], lambda: self._refresh(key))
            self._forget_some()
        in_use.users.add(user)
        return in_use

    def leave(self, key: Hashable, user: User) -> None:
        """An operator has no more calls of this key."""
        in_use = self._in_use[key]
        in_use.users.discard(user)
        offset_of(in_use.gate)  # its clock stands still from here to the next run
        if not in_use.users:
            del self._in_use[key]
            if key in self._copies:
                if may_forget(in_use.gate):
                    self._forget(key)
                else:
                    self._copies[key] = self._copies.pop(key)  # the last of those without calls

    def release(self, refresh: Callable[[], None]) -> None:
        """An operator has ended. Without a name and without users, the family goes; its state is in the gates."""
        self.users.discard(refresh)
        if not self.users and self.gate.name is None:
            dict_of_run(_FAMILIES).pop(_key_of_family(self._copies), None)

    def _forget_some(self) -> None:
        """Forget the keys without calls, except the `MAX_UNUSED` most recently used of those whose state matters.

        A gate with `must_keep` keeps all of those. On average, this takes a few steps per key.
        """
        if len(self._copies) < max(FEW, self._copies.enough):
            return
        kept = []
        for key in [key for key in self._copies if key not in self._in_use]:
            if may_forget(self._copies[key]):
                self._forget(key)
            elif not self.gate.must_keep:
                kept.append(key)
        for key in kept[:-MAX_UNUSED]:
            self._forget(key)
        self._copies.enough = min(2 * len(self._copies), len(self._copies) + MAX_UNUSED)

    def _forget(self, key: Hashable) -> None:
        del self._copies[key]
        self._set_busy(key, is_busy=False)

    def _refresh(self, key: Hashable) -> None:
        self._set_busy(key, is_busy=not self._copies[key].is_idle)

    def _set_busy(self, key: Hashable, *, is_busy: bool) -> None:
        (self._copies.busy.add if is_busy else self._copies.busy.discard)(key)
        if self.is_idle != self._was_idle:
            self._was_idle = self.is_idle
            for refresh in list(self.users):
                refresh()


# Those that the present Trio run uses, and those with a name that it has used
_FAMILIES: RunVar[dict[Hashable, GateFamily]] = RunVar("trio_asyncio_io families of gates")
# Of each gate that has been used: by id, because a gate may be unhashable. (gate, run, offset, latest)
_OFFSETS: dict[int, tuple[ref[Gate], trio.lowlevel.TrioToken, float, float]] = {}


def offset_of(gate: Gate) -> float:
    """The gate's own time minus Trio's. It continues from one Trio run to the next, as if no time had passed."""
    number, token, now = id(gate), trio.lowlevel.current_trio_token(), trio.current_time()
    known = _OFFSETS.get(number)
    offset = -now if known is None else known[2] if known[1] is token else known[3] - now
    gone = ref(gate, lambda _: _OFFSETS.pop(number, None)) if known is None else known[0]
    _OFFSETS[number] = gone, token, offset, now + offset
    return offset


def may_forget(gate: Gate) -> bool:
    """See `Gate.may_forget`."""
    return gate.may_forget(trio.current_time() + offset_of(gate))


def use_family(copies: Copies, refresh: Callable[[], None]) -> GateFamily:
    """The family of these copies, or of their class and name, in the present Trio run.

    Args:
        copies: Of a gate.
        refresh: Becomes a user of the family.

    Raises:
        ValueError: Another operator uses gates of this name with another configuration.
    """
    families, key = dict_of_run(_FAMILIES), _key_of_family(copies)
    family = families.get(key)
    if family is None or not _check_configuration(family.gate, copies.gate, is_used=bool(family.users)):
        family = families[key] = GateFamily(copies)
    family.users.add(refresh)
    return family


def _check_configuration(first: Gate, given: Gate, *, is_used: bool) -> bool:
    """Whether two gates of one name have the same configuration.

    Raises:
        ValueError: They have not, and the first one is used.
    """
    is_same = first.configuration() == given.configuration()
    if is_used and not is_same:
        raise ValueError(
            f"two different gates have the name {given.name!r}: {first} is in use, and {given} was given. Give both "
            "the same arguments, or different names"
        )
    return is_same


def _key_of_family(copies: Copies) -> Hashable:
    has_own_copies = copies.gate.name is None and not isinstance(copies, _Itself)
    return type(copies), id(copies) if has_own_copies else identity_of(copies.gate)


# A call that was reported as lost
_LOST: Final = Admission(Passage((), ()), 0.0, ())
_LOST.has_ended = True


class Gates:
    """The gates of one operator, or of one policy.

    Args:
        gates: All of them must admit a call.
        running: Returns the number of running calls.
        on_throttled: Called when the service has requested fewer calls.
        on_failure: Called with the exception of a broken gate, which stops the operator.

    Attributes:
        is_idle: Whether no call has to be checked.
        has_keys: Whether calls have gates of their keys.
        line: The records that wait for gates of all calls.
        passage: The gates of calls without a key.
        admissions: By sequence, the calls that were admitted and have not ended. A call that started while all gates
            were idle has none.
    """

    def __init__(
        self,
        gates: tuple[Gate | PerKey, ...],
        running: Callable[[], int],
        on_throttled: Callable[[], None],
        on_failure: Callable[[Exception, Entry | None], None],
    ) -> None:
        self._common = [gate for gate in gates if isinstance(gate, Gate)]
        self._per_key = next((gate for gate in gates if isinstance(gate, PerKey)), None)
        self._given = self._common if self._per_key is None else [*self._common, *self._per_key.gates]
        self._running = running
        self._on_throttled = on_throttled
        self._on_failure = on_failure
        self._families: list[GateFamily] = []  # of the gates for all calls first, then of each `PerKey`
        self._of_key: dict[Hashable, KeyGates] = {}
        self._enough = FEW
        self.is_weighted = any(gate.weight is not None for gate in self._given)
        self.is_idle = False
        self.has_keys = self._per_key is not None
        self.line = Line()
        self.passage = Passage(self._common, self.line.in_use)
        self.admissions: dict[int, Admission] = {}

    def open(self, refresh: Callable[[], None], change: Callable[[KeyGates | None], None]) -> None:
        """The operator starts.

        Args:
            refresh: Called when `is_idle` may have changed.
            change: Called when a gate may admit a call earlier than it said: a gate of this key, or a common one.

        Raises:
            ValueError: A gate has the name of another one, with another configuration.
        """
        self._notify, self._change = refresh, change
        self._user = User(lambda: change(None), self._running)
        of_keys = () if self._per_key is None else self._per_key.copies
        for copies in (*map(_Itself, self._common), *of_keys):
            self._families.append(use_family(copies, self._refresh))
        self.line.in_use.extend(family.use(None, self._user) for family in self._families[: len(self._common)])
        self._refresh()

    def close(self) -> None:
        """The operator has ended."""
        for family, _ in zip(self._families, self.line.in_use, strict=False):
            family.leave(None, self._user)
        for keys in self._of_key.values():
            keys.close()
        self._of_key.clear()
        for family in self._families:
            family.release(self._refresh)

    def of_key(self, value: object, *others: object) -> KeyGates | None:
        """The gates of the key of a call with these arguments. None: it has none.

        Raises:
            Exception: `key` raised.
        """
        key = None if self._per_key is None else self._per_key.key(value, *others)
        if key is None:
            return None
        found = self._of_key.get(key)
        if found is None:
            self._drop_some()
            found = self._of_key[key] = self._opened(key)
        return found

    # The ends of calls

    def completed(self, entry: Entry, now: float) -> None:
        """A call has returned."""
        admission = self.admissions.pop(entry.sequence, None)
        if admission is not None:
            self._end(admission, repeat(OK), now)

    def cancelled(self, entry: Entry, now: float) -> None:
        """A call was cancelled."""
        admission = self.admissions.pop(entry.sequence, None)
        if admission is not None:
            self._end(admission, repeat(CANCELLED), now)

    def expired(self, entry: Entry, since: float, now: float) -> None:
        """The deadline of a record has expired during a call that started at this instant."""
        admission = self._failing(entry, since)
        if admission is not None:
            self._end(admission, repeat(expired()), now)

    def failed(self, entry: Entry, since: float, reading: Reading, now: float) -> Exception | None:
        """A call that started at this instant has raised this error.

        Returns:
            The first exception of a `classify`, or None.
        """
        admission = self._failing(entry, since)
        if admission is None or admission.has_ended:
            return None
        outcomes, problem = self._outcomes_of(reading, admission.passage)
        self._end(admission, outcomes, now)
        return problem

    def lost(self, entry: Entry, since: float, error: Exception | None) -> None:
        """A call has raised, or was cancelled (None), and another call has given the element its result."""
        if error is None:
            self.cancelled(entry, trio.current_time())
        else:
            self.failed(entry, since, Reading(error), trio.current_time())
        self.admissions[entry.sequence] = _LOST

    def call_of(self, entry: Entry) -> WeighedCall | None:
        """The call of a record, for `settle`. None: all gates were idle when it started."""
        admission = self.admissions.get(entry.sequence)
        return None if admission is None else WeighedCall(admission, self._on_failure, self._change)

    def weights_of_extra(self, entry: Entry, passage: Passage) -> Weights:
        """The weights of another call for a record: those that its first call was estimated to have.

        Raises the same errors as `weights_of_call`, if all gates were idle when the first call started.
        """
        call = present_call(passage) if passage.is_weighted else None
        return weights_of_call(entry.records, passage) if call is None else call.admission.weights

    def around(self, admission: Admission) -> _CallInGates:
        """The context of an admitted call; reports its end to the gates."""
        return _CallInGates(self, admission)

    def weighed(self, admission: Admission) -> WeighedCall:
        """An admitted call of the present task, as `settle` finds it."""
        earlier = present_call(admission.passage)  # of the same element, in these gates
        if earlier is not None:
            earlier.admission.further += (admission,)
        outer = CURRENT_CALL.get() if earlier is None else earlier.outer
        return WeighedCall(admission, self._on_failure, self._change, outer)

    def end_with(self, admission: Admission, error: BaseException | None) -> Exception | None:
        """An admitted call has raised this error, or has returned (None).

        Returns:
            The first exception of a `classify`, or None.
        """
        outcomes: Iterable[Outcome] = repeat(OK if error is None else CANCELLED)
        problem = None
        try:
            if isinstance(error, Exception):
                outcomes, problem = self._outcomes_of(Reading(error), admission.passage)
        finally:
            self._end(admission, outcomes, trio.current_time())
            self._change(None)
        return problem

    def _failing(self, entry: Entry, since: float) -> Admission | None:
        """The call of a record that fails. None: the user's key or weight is broken."""
        admission = self.admissions.pop(entry.sequence, None)
        if admission is not None:
            return admission
        try:
            keys = self.of_key(entry.records[0].value)
            passage = self.passage if keys is None else keys.passage
            return Admission(passage, since, weights_of_call(entry.records, passage))
        except Exception as error:  # noqa: BLE001 - the user's key or weight may raise anything
            self._on_failure(error, entry)
            return None

    @enable_ki_protection
    def _end(self, admission: Admission, outcomes: Iterable[Outcome], now: float) -> None:
        """Report the end of a call. Its lines are asked again when this operator assigns next."""
        try:
            admission.end(outcomes, now)
        except Exception as error:  # noqa: BLE001 - a gate may raise anything
            self._on_failure(error, None)
        self.line.held_until = -inf
        if admission.passage.keys is not None:
            self._change(admission.passage.keys)

    def _outcomes_of(self, reading: Reading, passage: Passage) -> tuple[list[Outcome], Exception | None]:
        """The outcome of an error for each gate, and the first exception of a `classify`."""
        outcomes, problem = [], None
        error = reading.error
        assert isinstance(error, Exception)
        for gate in passage.given:
            try:
                outcomes.append(outcome_for(reading, gate))
            except Exception as raised:  # noqa: BLE001 - the user's classifier may raise anything
                if raised.__context__ is None:
                    set_on(raised, __context__=error)
                outcomes.append(Outcome("error", error=error))
                problem = raised if problem is None else problem
        if any(outcome.kind == "throttled" for outcome in outcomes):
            self._on_throttled()
        return outcomes, problem

    def _refresh(self) -> None:
        self.is_idle = all(family.is_idle for family in self._families)
        self._notify()

    def _opened(self, key: Hashable) -> KeyGates:
        user = User(lambda: self._change(keys), self._running)
        families = self._families[len(self._common) :]

        def close() -> None:
            for family in families:
                family.leave(key, user)

        in_use = [family.use(key, user) for family in families]
        keys = KeyGates(in_use, self.line.in_use, self._given, close)
        return keys

    def _drop_some(self) -> None:
        """Drop the keys without calls. The cost is a few steps per key, on average."""
        if len(self._of_key) >= self._enough:
            for key in [key for key, each in self._of_key.items() if not each.is_in_use]:
                self._of_key.pop(key).close()
            self._enough = max(FEW, 2 * len(self._of_key))


class _CallInGates:
    """See `Gates.around`. A generator with `@contextmanager` could not pass on an error that is a frozen dataclass."""

    def __init__(self, gates: Gates, admission: Admission) -> None:
        self._gates = gates
        self._admission = admission

    def __enter__(self) -> None:
        self._token = CURRENT_CALL.set(self._gates.weighed(self._admission))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        CURRENT_CALL.reset(self._token)
        problem = self._gates.end_with(self._admission, error)
        if problem is not None:
            raise problem from error
