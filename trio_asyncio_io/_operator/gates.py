"""The gates of an operator, in Trio: their clocks, their users, and the ends of calls.

The scheduler decides which call may start; see `_core.admission`. This module reports to the gates how calls end.

Operators that use one gate, by object or by class and name, share its `GateFamily`: the copies that a `PerKey` makes of
it, or the gate itself. Each of them is a `SharedGate`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextvars import Token
from dataclasses import dataclass, field
from functools import partial
from itertools import repeat
from math import inf
from types import TracebackType
from typing import Any
from weakref import ref

import trio
from trio.lowlevel import RunVar, enable_ki_protection

from .._core.admission import Admission, GateLine, SharedGate
from .._core.gate import CANCELLED, CURRENT_CALL, OK, Copies, Gate, Outcome, PerKey, RefusedError
from .._core.queue import Entry
from .._core.reading import Reading
from .._values.exceptions import set_on
from .calls import settle_if_running
from .tasks import dict_of_run

FEW = 64  # with fewer keys, a search for those without calls is not worth its cost
MAX_UNUSED = 10_000  # keys without calls whose gates are kept for their state


@dataclass(eq=False)
class GateFamily:
    """The copies of one gate, by key, in the present Trio run. All operators that use the family share it.

    Args:
        copies: The gates, by key. Those of earlier runs are among them.
        identity: Gates of one identity have one family.

    Attributes:
        gate: The gate that is copied.
        users: The operators and policies.
    """

    copies: Copies
    identity: Hashable
    users: set[Gates] = field(default_factory=set, init=False)

    def __post_init__(self) -> None:
        self.gate = self.copies.gate
        self._in_use: dict[Hashable, SharedGate] = {}

    def use(self, key: Hashable) -> SharedGate:
        """The gate of this key, or with None that of all calls."""
        shared = self._in_use.get(key)
        if shared is None:
            gate = self.copies[key]
            shared = self._in_use[key] = SharedGate(gate, offset_of(gate))
            self._forget_some()
        return shared

    def leave(self, line: GateLine) -> None:
        """An operator has no more calls in this line."""
        key = line.key
        shared = self._in_use[key]
        shared.lines.discard(line)
        if not shared.lines:
            del self._in_use[key]
            if may_forget(shared.gate):  # its clock stands still from here to the next run
                del self.copies[key]
            else:
                self.copies[key] = self.copies.pop(key)  # the last of those without calls

    def release(self, user: Gates) -> None:
        """An operator has ended. If only one object uses the family, it goes; its state is in the gates."""
        self.users.discard(user)
        if not self.users and self.gate.identity == id(self.gate):
            dict_of_run(_FAMILIES).pop(self.identity, None)

    def _forget_some(self) -> None:
        """Forget the keys without calls, except the `MAX_UNUSED` most recently used of those whose state matters.

        A gate with `must_keep` keeps all of those. On average, this takes a few steps per key.
        """
        if len(self.copies) < max(FEW, self.copies.enough):
            return
        kept = []
        for key in [key for key in self.copies if key not in self._in_use]:
            if may_forget(self.copies[key]):
                del self.copies[key]
            elif not self.gate.must_keep:
                kept.append(key)
        for key in kept[:-MAX_UNUSED]:
            del self.copies[key]
        self.copies.enough = min(2 * len(self.copies), len(self.copies) + MAX_UNUSED)


# Those that the present Trio run uses, and those with a name that it has used
_FAMILIES: RunVar[dict[Hashable, GateFamily]] = RunVar("trio_asyncio_io families of gates")
# Of each gate that has been used: by id, because a gate may be unhashable. (gate, run, offset, latest)
_OFFSETS: dict[int, tuple[ref[Gate], trio.lowlevel.TrioToken, float, float]] = {}


def offset_of(gate: Gate) -> float:
    """The gate's own time minus Trio's. It continues from one Trio run to the next, as if no time had passed."""
    number, token, now = id(gate), trio.lowlevel.current_trio_token(), trio.current_time()
    known = _OFFSETS.get(number)
    offset = -now if known is None else known[2] if known[1] is token else known[3] - now
    gone = ref(gate, partial(_forget_offset, number)) if known is None else known[0]
    _OFFSETS[number] = gone, token, offset, now + offset
    return offset


@enable_ki_protection  # Python drops what a callback of a weak reference raises, and Ctrl-C with it
def _forget_offset(number: int, _: object) -> None:
    _OFFSETS.pop(number, None)


def may_forget(gate: Gate) -> bool:
    """See `Gate.may_forget`."""
    return gate.may_forget(trio.current_time() + offset_of(gate))


def use_family(copies: Copies, user: Gates, *, is_keyed: bool) -> GateFamily:
    """The family of these copies, or of their class and name, in the present Trio run.

    Args:
        copies: The copies of a gate.
        user: Uses the family, until `release`.
        is_keyed: Whether the copies are those of a `PerKey`, which share no state with a gate for all calls.

    Raises:
        ValueError: Another operator uses gates of this name with another configuration.
    """
    families, gate = dict_of_run(_FAMILIES), copies.gate
    is_own = is_keyed and gate.identity == id(gate)
    identity = is_keyed, id(copies) if is_own else gate.identity
    family = families.get(identity)
    if family is None or family.gate.configuration() != gate.configuration():
        if family is not None and family.users:
            raise ValueError(
                f"two different gates have the name {gate.name!r}: {family.gate} is in use, and {gate} was given. Give "
                "both the same arguments, or different names"
            )
        family = families[identity] = GateFamily(copies, identity)
    family.users.add(user)
    return family


@dataclass(eq=False)
class Gates:
    """The gates of one operator, or of one policy.

    Args:
        gates: All of them must admit a call.
        running: Returns the number of running calls.
        on_throttled: Called when the service has requested fewer calls.
        on_failure: Called with the exception of a broken gate, which stops the operator.

    Attributes:
        has_keys: Whether calls have gates of their keys.
        react_to_ends: Whether the end of a call may hold back the next ones.
        longest_wait: The shortest `Gate.longest_wait`.
        line: The line of all calls.
        is_weighted: Whether a gate has weights.
        admissions: sequence -> the call that was admitted and has not ended.
    """

    gates: tuple[Gate | PerKey, ...]
    running: Callable[[], int]
    on_throttled: Callable[[], None]
    on_failure: Callable[[Exception, Entry | None], None]

    def __post_init__(self) -> None:
        common = [gate for gate in self.gates if isinstance(gate, Gate)]
        self._per_key = next((gate for gate in self.gates if isinstance(gate, PerKey)), None)
        self._given = common if self._per_key is None else [*common, *self._per_key.gates]
        self._common: list[GateFamily] = []
        self._keyed: list[GateFamily] = []  # of the gates of the `PerKey`
        self._enough = FEW
        self.is_weighted = any(gate.weight is not None for gate in self._given)
        self.react_to_ends = any(gate.reacts_to_ends for gate in self._given)
        self.longest_wait = min((gate.longest_wait for gate in self._given), default=inf)
        self.has_keys = self._per_key is not None
        self.line = GateLine(common, count_running=self.running)
        self._lines: dict[Hashable, GateLine] = {None: self.line}  # key -> its line
        self.admissions: dict[int, Admission] = {}

    def finding(self) -> str:
        """What the gates have found about the service. Gates per key count only if there is one key."""
        gates = [each.gate for each in self.line.gates]
        for family in self._keyed:
            if len(family.copies) == 1:
                gates += family.copies.values()
        return "; ".join(filter(None, (gate.finding for gate in gates)))

    def open(self, change: Callable[[GateLine], object]) -> None:
        """The operator starts.

        Args:
            change: Called when a gate of this line may admit a call earlier than it said.

        Raises:
            ValueError: A gate has the name of another one, with another configuration.
        """
        self.line.change = change
        for gate in self.line.given:
            self._common.append(use_family(Copies(gate), self, is_keyed=False))
        for copies in () if self._per_key is None else self._per_key.copies:
            self._keyed.append(use_family(copies, self, is_keyed=True))
        self.line.open([family.use(None) for family in self._common])

    def close(self) -> None:
        """The operator has ended."""
        for line in self._lines.values():
            self._leave(line)
        self._lines.clear()
        for family in (*self._common, *self._keyed):
            family.release(self)

    def line_of(self, *arguments: object) -> GateLine:
        """The line of a call with these arguments: that of its key, or that of all calls if it has no key.

        Raises:
            Exception: `key` raised.
        """
        key = None if self._per_key is None else self._per_key.key(*arguments)
        line = self._lines.get(key)
        if line is None:
            self._drop_some()
            line = GateLine(self._given, self.line, key=key, change=self.line.change, count_running=self.running)
            line.open([family.use(key) for family in self._keyed])
            self._lines[key] = line
        return line

    # The ends of calls

    def end(self, call: Entry, end: Outcome | Reading, now: float) -> Exception | None:
        """The call of a record has ended: with an outcome, or by raising.

        Returns:
            The first exception of a `classify`, or None.
        """
        admission = self.admissions.pop(call.sequence, None)
        # None: its end was reported before a callback raised an interrupt, which ends the call once more
        return None if admission is None else self.end_admitted(admission, end, now)

    def lose(self, call: Entry, error: Exception | None) -> None:
        """A call has raised, or was cancelled (None), and another call has given the element its result."""
        end = CANCELLED if error is None else Reading(error)
        self.end_admitted(self.admissions[call.sequence], end, trio.current_time())  # nothing more is reported

    def call_of(self, entry: Entry) -> CallInGates:
        """The call of a record, for `settle`."""
        return CallInGates(self, self.admissions[entry.sequence])

    def start_extra(self, call: Entry) -> CallInGates | None:
        """Start an extra call of a running record. None: a gate holds it back or refuses it, or records wait.

        Returns:
            The call, as a context manager. It weighs what the first one was estimated to weigh.
        """
        now = trio.current_time()
        try:
            line = self.line_of(call.records[0].value)
            first = present_call(line) if line.is_weighted else None
            weights = line.weights_of_records(call.records) if first is None else first.admission.weights
            return None if line.line_for(weights, now) else CallInGates(self, Admission(line, now, weights).start())
        except RefusedError:
            return None
        except Exception as error:  # noqa: BLE001 - a gate may raise anything
            self.on_failure(error, None)
            return None

    @enable_ki_protection
    def end_admitted(self, admission: Admission, end: Outcome | Reading, now: float) -> Exception | None:
        """Report the end of a call, unless `lose` has. Its lines are asked again when this operator assigns next.

        Returns:
            The first exception of a `classify`, or None.
        """
        if admission.has_ended:
            return None
        outcomes, problem = (repeat(end), None) if isinstance(end, Outcome) else self._outcomes_of(end, admission.line)
        try:
            admission.end(outcomes, now)
        except Exception as error:  # noqa: BLE001 - a gate may raise anything
            self.on_failure(error, None)
        self.line.held_until = -inf
        if admission.line is not self.line:
            self.line.change(admission.line)
        return problem

    def _outcomes_of(self, reading: Reading, line: GateLine) -> tuple[list[Outcome], Exception | None]:
        """The outcome of an error for each gate, and the first exception of a `classify`."""
        outcomes, problem = [], None
        error = reading.error
        assert isinstance(error, Exception)
        for gate in line.given:
            try:
                outcomes.append(reading.outcome_for(gate))
            except Exception as raised:  # noqa: BLE001 - the user's classifier may raise anything
                if raised.__context__ is None:
                    set_on(raised, __context__=error)
                outcomes.append(Outcome("error", error=error))
                problem = raised if problem is None else problem
        if any(outcome.kind == "throttled" for outcome in outcomes):
            self.on_throttled()
        return outcomes, problem

    def _leave(self, line: GateLine) -> None:
        families = self._common if line is self.line else self._keyed
        for family, _ in zip(families, line.gates, strict=False):  # not strict: `open` may have raised
            family.leave(line)

    def _drop_some(self) -> None:
        """Drop the keys without calls. The cost is a few steps per key, on average."""
        if len(self._lines) >= self._enough:
            for key in [key for key, line in self._lines.items() if line.common and not (line.heap or line.uses)]:
                self._leave(self._lines.pop(key))
            self._enough = max(FEW, 2 * len(self._lines))


@dataclass(eq=False, slots=True)  # not frozen: that would take three times as long to create
class CallInGates:
    """An admitted call, whose weight `settle` corrects.

    As a context manager, it is the present call of its block, and reports its end to the gates. A generator with
    `@contextmanager` could not pass on an error that is a frozen dataclass.

    Args:
        gates: The gates.
        admission: The call.

    Attributes:
        outer: What is around it, or None: the call of the element, if a policy has gates of its own.
    """

    gates: Gates
    admission: Admission
    outer: Any = field(default=None, init=False)
    _token: Token[Any] = field(init=False)

    @enable_ki_protection
    def settle(self, actual: float, name: str | None) -> None:
        """Correct the weight in the gates that have one, or in those of this name, and that of the call around it.

        Raises:
            CallEndedError: The call has ended.
            ValueError: The call, or the one around it, has settled less before.
        """
        self.admission.check_settle(actual, name)
        try:
            self.admission.settle(actual, name)
        except Exception as error:  # noqa: BLE001 - a gate may raise anything
            self.gates.on_failure(error, None)
        line = self.admission.line
        line.change(line)
        if line.common is not None:
            line.change(line.common)
        settle_if_running(self.outer, actual, name)

    def usage(self, name: str | None) -> tuple[float, float] | None:
        """See `Admission.usage`. A gate of the call around it counts if this one has none."""
        found = self.admission.usage(name)
        if found is None and self.outer is not None:
            return self.outer.usage(name)  # type: ignore[no-any-return]
        return found

    def __enter__(self) -> None:
        earlier = present_call(self.admission.line)  # of the same element, in these gates
        if earlier is not None:
            earlier.admission.extras += (self.admission,)
        self.outer = CURRENT_CALL.get() if earlier is None else earlier.outer
        self._token = CURRENT_CALL.set(self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        CURRENT_CALL.reset(self._token)
        end = Reading(error) if isinstance(error, Exception) else OK if error is None else CANCELLED
        problem = self.gates.end_admitted(self.admission, end, trio.current_time())
        self.gates.line.change(self.gates.line)
        if problem is not None:
            raise problem from error


def present_call(line: GateLine) -> CallInGates | None:
    """The present task's call that has passed the gates of this line."""
    call: object = CURRENT_CALL.get()
    while isinstance(call, CallInGates):
        if call.admission.line is line:
            return call
        call = call.outer
    return None
