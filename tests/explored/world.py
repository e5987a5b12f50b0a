"""The world of one operator: its source, its function, its consumers, and everything that may happen to them.

A `Setting` says what is in a world, and which of its freedoms are explored. Its invariants are what the operator
promises, as far as possible in terms of what a user can see: outputs, calls, `snapshot()` and `statistics()`. A world
is also stopped and restored: whatever ends the block early, the next operator continues with the snapshot and with the
rest of the source, up to four times.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar

import outcome
import trio

from tests.explored.loom import LAST, UNBOUNDED, Event, Loom, Violation, Walk
from tests.explored.surroundings import Outputs, Surroundings, key_of, name_of, named
from trio_asyncio_io import (
    AsyncWaitOperator,
    DeadLetter,
    ElementTimeoutError,
    FixedDelay,
    Snapshot,
    StreamRecord,
    Totals,
    Watermark,
)
from trio_asyncio_io.gates import Gate, PerKey, RefusedError

__all__ = ["IGNORED", "OperatorWorld", "Setting"]

BACKOFF = 1.0
CALL, UNWIND, HANDLER, READ, READ_DEAD, FEED, PUT = "call", "unwind", "handler", "read", "read dead", "feed", "put"
FROM_OUTSIDE, CALLS = 1, 2  # ranks of events

# Fields and classes on which no future depends: accounts, and what is the same in the whole run
IGNORED = frozenset(
    {"Counters", "Flow", "Sampling", "Samples", "Invoker", "Options", "Holder", "BlockContext", "Pace", "Context"}
    | {"load", "holder", "_holder", "current_time", "_current_time", "_ready_since", "_free_since", "_pace"}
    | {"_identity"}
)

variable: ContextVar[int | None] = ContextVar("variable", default=None)


@dataclass(frozen=True, kw_only=True)
class Setting(Surroundings):
    """What is in a world, and what is free in it.

    Attributes:
        gate: It may close after an end of a call: for a second, or until another call ends.
        refuses: Whether the gate may refuse one call.
        source: A "list", a source whose elements arrive "slowly", or a task that calls "put".
        is_slow: Whether a consumer may take its time after each output.
        unwinds_slowly: Whether a cancelled call takes its time.
        sets_variable: Whether each call sets a context variable.
        cancel, interrupt: Whether the block may be cancelled from outside, or Ctrl-C may come.
        stop_after, close_after: The consumer leaves, or closes the output, after this number of outputs.
        is_eager, is_crowded: See `World`.
        is_accounted: Whether the sums of `totals()` are compared with those that the world counts.
        bound: See `explore`.
    """

    buffer: int = 2
    on_error: str = "skip"
    source: str = "list"
    consumers: int = 1
    is_slow: bool = False
    unwinds_slowly: bool = False
    sets_variable: bool = False
    cancel: bool = False
    interrupt: bool = False
    stop_after: int = 0
    close_after: int = 0
    is_eager: bool = False
    is_crowded: bool = False
    is_accounted: bool = False
    bound: int = UNBOUNDED


class OperatorWorld:
    """The world of one run.

    Attributes:
        outputs: Those that were received.
        dead: The records whose dead letters were received.
    """

    operator_type: ClassVar[Any] = AsyncWaitOperator

    def __init__(self, setting: Setting, loom: Loom) -> None:
        self.setting = setting
        self.is_eager, self.is_crowded = setting.is_eager, setting.is_crowded
        self.subjects: list[Any] = []
        self.dead: list[int] = []
        self._loom = loom
        self._rest = deque(setting.elements())
        self._parked: dict[tuple[Any, ...], trio.lowlevel.Task] = {}
        self._may = {name for name in ("cancel", "interrupt", "stop_after", "close_after") if getattr(setting, name)}
        self._scope = trio.CancelScope()
        self._operator: Any = None
        self._is_inside = False  # the block
        self._is_ending = False  # its body is over
        self._is_first = True  # no operator was restored yet
        self._has_left = False  # the consumer
        self.outputs = Outputs(setting)
        self._calls: dict[int, list[int]] = {}  # by their first record, those that run
        self._handlers: set[int] = set()
        self._tries: dict[int, int] = {}
        self._began: dict[int, float] = {}
        self._spent: dict[int, float] = {}  # by record, the seconds of its attempts and backoffs
        self._due: dict[int, float] = {}  # of records that wait for their retry: when their backoff ends
        self._done: set[int] = set()
        self._failed: set[int] = set()
        self._gate = Bit(self)
        self._ends: list[float] = []  # of calls, since the last record has started
        self._supplied_at = inf  # since then, a slot is free for which no record is left
        self._sums = {0.0: Totals()}  # by instant

    # What is the world's

    def events(self) -> list[Event]:
        setting, found = self.setting, []
        for rank, label in enumerate(sorted(self._parked, key=str), start=CALLS):
            kind, value = label[:2]
            if kind is CALL:
                found.append(Event(rank, f"the call of {value} returns", lambda each=label: self._resume(each, "ok")))
                if label[2] <= setting.retries or (setting.fails and self._is_first):
                    text = f"the call of {value} raises"
                    found.append(Event(rank, text, lambda each=label: self._resume(each, "error")))
            else:
                text = EVENTS[kind].format(value)
                found.append(Event(rank, text, lambda each=label: self._resume(each, None)))
        if self._is_inside and "cancel" in self._may:
            found.append(Event(FROM_OUTSIDE, "the block is cancelled from outside", self._cancel))
        if self._is_inside and "interrupt" in self._may:
            found.append(Event(FROM_OUTSIDE, "Ctrl-C", self._interrupt))
        due = self._loom.next_deadline()
        if due < inf:
            found.append(Event(LAST, f"the clock goes to {due:g}", lambda: self._tick(due)))
        return found

    def _resume(self, label: tuple[Any, ...], value: Any) -> None:
        trio.lowlevel.reschedule(self._parked.pop(label), outcome.Value(value))

    def _cancel(self) -> None:
        self._may.discard("cancel")
        self._scope.cancel()

    def _interrupt(self) -> None:
        self._may.discard("interrupt")
        self._loom.interrupt()

    def _tick(self, due: float) -> None:
        if self.setting.is_accounted and self._is_inside:
            self._account(due - self._loom.now)
        self._loom.now = due

    async def _park(self, *label: Any) -> Any:
        """Wait until the event of this label happens."""
        self._parked[label] = trio.lowlevel.current_task()

        def abort(_: Any) -> trio.lowlevel.Abort:
            del self._parked[label]
            return trio.lowlevel.Abort.SUCCEEDED

        return await trio.lowlevel.wait_task_rescheduled(abort)

    def state(self, walk: Walk) -> None:
        if self._operator is not None:
            walk.add(self._operator)
            ledger = self._operator._ledger
            flow, counters = ledger.flow, ledger.counters
            walk.add(flow.backoffs, flow.spent, flow.at_keys, flow.room.is_on, flow.input_end, counters.running)
        walk.add(sorted(map(str, self._parked)), sorted(self._may), self._is_inside, self._is_first, self._has_left)
        walk.add(
            self.outputs.got,
            self.dead,
            list(self._calls.values()),
            self._handlers,
            self._began,
            self._spent,
            self._due,
            self._done,
        )
        if self.setting.timeout < inf:
            walk.add({each: self._spent[each] for each in self._spent if each not in self._done | self._failed})
        walk.add(self._tries, self._failed, len(self.subjects), self._loom.was_interrupted, self._scope.cancel_called)
        walk.add([gate.state() for gate in self._gates()])

    def end(self) -> object:
        return tuple(self.outputs.got), tuple(self.dead), tuple(sorted(self._tries.items())), len(self.subjects)

    # The function, and what else is the user's

    async def _function(self, value: Any) -> Any:
        values = value if isinstance(value, list) else [value]
        first = values[0]
        self._check_call(values)
        for each in values:
            self._tries[each] = self._tries.get(each, 0) + 1
            self._began[each] = self._loom.now
            self._due.pop(each, None)
        attempt = self._tries[first]
        if attempt == 1:
            self._ends.clear()
        self._calls[first] = values
        self._loom.say(f"the call of {_list(values)} begins")
        try:
            how = await self._park(CALL, first, attempt)
        except trio.Cancelled:
            self._check_cancelled(values)
            if self.setting.unwinds_slowly:
                with trio.CancelScope(shield=True):
                    await self._park(UNWIND, first)
            raise
        finally:
            del self._calls[first]
            self._ends.append(self._loom.now)
            for each in values:
                self._spent[each] = self._spent.get(each, 0.0) + self._loom.now - self._began.pop(each)
        if how == "error":
            self._raise(values)
        self._done.update(values)
        return [self._result(each) for each in values] if isinstance(value, list) else self._result(value)

    def _raise(self, values: list[int]) -> None:
        for each in values:
            may_retry = self._tries[each] <= self.setting.retries
            is_split = len(values) > 1 and self.setting.group_split
            backoff = BACKOFF if may_retry else 0.0
            if (may_retry or is_split) and self._spent[each] + backoff < self.setting.timeout:
                self._due[each] = self._loom.now + backoff
                self._spent[each] += backoff
            else:
                self._failed.add(each)
        raise OSError(values[0])

    def _result(self, value: int) -> Any:
        if self.setting.flatten is None:
            return value, 0
        return [(value, part) for part in range(self.setting.flatten[value])]

    async def _handle(self, value: int, error: Exception) -> Any:
        self._handlers.add(value)
        try:
            await self._park(HANDLER, value)
        finally:
            self._handlers.discard(value)
        self._done.add(value)
        return self._result(value)

    def _options(self) -> dict[str, Any]:
        setting = self.setting
        given: dict[str, Any] = {name: getattr(setting, name) for name in ("mode", "timeout", "capacity", "buffer")}
        given["on_error"] = self._handle if setting.on_error == "handler" else setting.on_error
        given["flatten"] = setting.flatten is not None
        if setting.retries:
            given["retry"] = FixedDelay(setting.retries, BACKOFF, retry_on=OSError)
        if setting.mode == "keyed":
            given["key"] = key_of
        if setting.group:
            given |= {"group": setting.group, "group_split": setting.group_split, "group_wait": 0.0}
        if setting.gate:
            given["gate"] = self._gate if setting.gate == "one" else PerKey(self._gate, key=key_of)
        return given

    def _source(self) -> Any:
        if self.setting.source == "put":
            return None
        return self._arriving() if self.setting.source == "slowly" and self._is_first else self._taken()

    def _taken(self) -> Iterator[Any]:
        while self._rest:
            yield self._rest.popleft()

    def _arriving(self) -> AsyncIterator[Any]:
        return Arriving(self)

    # The program

    async def main(self) -> None:
        snapshot = None
        for _ in range(4):
            problem = await self._phase(snapshot)
            self._check_left(ended=problem is None)
            if problem is None:
                break
            snapshot = self._operator.snapshot()
            self._loom.say(f"{problem}: restored with {_names_in(snapshot)}")
            self._is_first, self._has_left, self._scope = False, False, trio.CancelScope()
            self._due.clear()
            self._spent.clear()
        self._check_end()

    async def _phase(self, snapshot: Snapshot | None) -> str | None:
        """One operator, from the beginning of its block to the end. Returns why it has ended early, or None."""
        problem = None
        self._operator = self.operator_type(self._function, source=self._source(), restore=snapshot, **self._options())
        self.subjects.append(self._operator)
        self._is_ending = False
        try:
            with self._scope:
                self._is_inside = True
                try:
                    async with self._operator:
                        try:
                            await self._body()
                        finally:
                            self._is_ending = True
                finally:
                    self._is_inside = False
        except (KeyboardInterrupt, Exception, BaseExceptionGroup) as error:
            problem = self._reason(error)
            if problem is None:
                raise
        if self._scope.cancelled_caught:
            return "the cancellation has ended the block"
        return problem or ("the consumer has left" if self._has_left else None)

    def _reason(self, error: BaseException) -> str | None:
        """Why this exception may leave the block, or None."""
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if isinstance(error, KeyboardInterrupt) and self._loom.was_interrupted:
            return "Ctrl-C has ended the block"
        is_failure = isinstance(error, OSError) and self.setting.on_error == "raise"
        is_timeout = isinstance(error, ElementTimeoutError) and self.setting.on_error in {"raise", "handler"}
        return "a failure has ended the block" if is_failure or is_timeout else None

    async def _body(self) -> None:
        setting = self.setting
        has_dead_letters = setting.on_error == "dead_letter"
        if setting.consumers == 1 and not has_dead_letters and setting.source != "put":
            await self._consume(0)
            return
        async with trio.open_nursery() as nursery:
            if setting.source == "put":
                nursery.start_soon(self._put, name="putting task")
            if has_dead_letters:
                nursery.start_soon(self._consume_dead, name="reader of dead letters")
            for number in range(1, setting.consumers):
                nursery.start_soon(self._consume, number, name=f"consumer {number}")
            await self._consume(0)
            if self._has_left:
                nursery.cancel_scope.cancel()

    async def _put(self) -> None:
        if self._is_first:
            await self._park(PUT, "")
        while self._rest:
            try:
                await self._operator.put(self._rest[0])
            except (trio.ClosedResourceError, trio.BrokenResourceError):
                return
            self._rest.popleft()
        self._operator.end_input()

    async def _consume(self, number: int) -> None:
        async for output in self._operator.output:
            name = name_of(output)
            self.outputs.receive(name)
            self._loom.say(f"{named(name)} is received")
            if "close_after" in self._may and len(self.outputs.got) == self.setting.close_after:
                await self._close()
                return
            if "stop_after" in self._may and len(self.outputs.got) == self.setting.stop_after:
                self._may.discard("stop_after")
                self._has_left = True
                return
            if self.setting.is_slow:
                await self._park(READ, number)

    async def _close(self) -> None:
        self._may.discard("close_after")
        self._has_left = True
        self._operator.output.close()
        try:
            await self._operator.output.receive()
        except trio.ClosedResourceError:
            return
        raise Violation("something was received from a closed channel")

    async def _consume_dead(self) -> None:
        async for letter in self._operator.output.dead_letters:
            value = letter.element.value if self.setting.walls else letter.element
            if value in self.dead or value in self._done:
                raise Violation(f"a dead letter of {value}, which had its end before")
            self.dead.append(value)
            self._loom.say(f"the dead letter of {value} is received")
            if self.setting.is_slow:
                await self._park(READ_DEAD, "")

    # What is promised: calls

    def _check_call(self, values: list[int]) -> None:
        setting, running = self.setting, [each for call in self._calls.values() for each in call]
        for value in values:
            setting.check_call(value, running, self._done)
            if self._due.get(value, 0.0) > self._loom.now:
                raise Violation(f"the retry of {value} begins before the end of its backoff")
        self._check_start(values)
        if len(self._calls) >= setting.capacity:
            raise Violation(f"{len(self._calls) + 1} calls run, and the capacity is {setting.capacity}")
        if setting.sets_variable:
            if variable.get() not in ({None, values[0]} if setting.retries else {None}):
                raise Violation(f"the call of {values[0]} has the context variable of {variable.get()}")
            variable.set(values[0])

    def _check_start(self, values: list[int]) -> None:
        if self._is_ending:
            raise Violation(f"the call of {_list(values)} begins after the body of the block")
        if values[0] in self._tries:
            return
        overtaken = [each for each in range(values[0]) if self._could_begin(each)]
        if overtaken:
            raise Violation(f"the call of {_list(values)} begins before that of {_list(overtaken)}")
        if self.must_retry_first:
            raise Violation(f"the call of {_list(values)} begins while {_list(list(self._due))} wait for their retry")

    def _could_begin(self, value: int) -> bool:
        """Whether the first call of a record that is older than one that begins must have begun before."""
        setting = self.setting
        if value in self._tries or not self._is_first or setting.refuses or setting.gate == "per key":
            return False
        same_key = [each for each in range(value) if key_of(each) == key_of(value)]
        return setting.mode != "keyed" or all(each in self._done for each in same_key)

    def _check_cancelled(self, values: list[int]) -> None:
        """A call is cancelled at its deadline, or because the block ends."""
        due = self._deadline(values)
        if self._loom.now > due:
            raise Violation(f"the call of {_list(values)} is cancelled {self._loom.now - due:g} s after its deadline")
        is_ending = self._scope.cancel_called or not self._operator._ledger.may_start
        if self._loom.now < due and not self.setting.group and not is_ending:
            raise Violation(f"the call of {_list(values)} is cancelled {due - self._loom.now:g} s before its deadline")

    def _deadline(self, values: list[int]) -> float:
        """Waits for a slot or a gate do not count towards the timeout."""
        return min(self._began[each] - self._spent.get(each, 0.0) for each in values) + self.setting.timeout

    # What is promised: at any moment, and when no task is ready

    def check(self, *, is_quiet: bool) -> None:
        if self._operator is None or not self._is_inside:
            return
        ledger = self._operator._ledger
        if ledger.buffered > self.setting.buffer:
            raise Violation(f"{ledger.buffered} records are held, and the buffer is {self.setting.buffer}")
        if not 0 <= ledger.counters.running <= self.setting.capacity:
            raise Violation(f"{ledger.counters.running} slots are in use, and the capacity is {self.setting.capacity}")
        if is_quiet and ledger.may_start:
            self._check_quiet(View(self))

    def _check_quiet(self, view: View) -> None:
        """Nothing that could go on may wait."""
        setting, now = self.setting, self._loom.now
        if view.running != view.used:
            raise Violation(f"{view.running} slots are in use, and {view.used} calls and handlers run")
        if view.free and view.startable and view.is_open:
            raise Violation(f"a slot is free, and {_list(view.startable)} could start")
        if view.has_room and self._rest and setting.source == "list":
            raise Violation("the buffer has room, and the source is not read")
        if view.has_room and view.is_held:
            raise Violation("the buffer has room, and the feeder holds an element")
        busy = sum(label[0] is READ for label in self._parked)
        if view.leaving and busy < setting.consumers and not self._has_left:
            raise Violation(f"{_list(view.leaving)} could be received, and a consumer waits")
        if setting.timeout < inf and not setting.unwinds_slowly:
            for values in self._calls.values():
                if now >= self._deadline(values):
                    raise Violation(f"the call of {_list(values)} goes on after its deadline")

    def gates_by_key(self) -> dict[Any, Bit]:
        if self.setting.gate != "per key" or self._operator is None:
            return {}
        families = self._operator._parts._gates._per_key.copies
        return {key: gate for copies in families for key, gate in copies.items()}

    def _gates(self) -> list[Any]:
        return [self._gate, *self.gates_by_key().values()]

    @property
    def must_retry_first(self) -> bool:
        """Whether as many records wait for their retry as can run at once."""
        limit = self.setting.capacity * (self.setting.group or 1)
        return self.setting.gate != "per key" and len(self._due) >= limit

    def choose(self, *texts: str) -> int:
        return self._loom.choose(*texts)

    @property
    def now(self) -> float:
        return self._loom.now

    # What is promised: at the end

    def _check_end(self) -> None:
        self.outputs.check_end(self._is_excused)
        for value, tries in self._tries.items():
            if tries > (1 + self.setting.retries) * len(self.subjects) * (1 + 2 * self.setting.group_split):
                raise Violation(f"{value} was called {tries} times")

    def _is_excused(self, value: int) -> bool:
        """Whether a record may have no output."""
        if value in self._done:
            return False
        if self.setting.on_error == "dead_letter":
            return value in self.dead
        return value in self._failed or self.setting.timeout < inf or self.setting.refuses

    # What is promised: after the block

    def _check_left(self, *, ended: bool) -> None:
        if self._calls or any(label[0] in {CALL, UNWIND, HANDLER} for label in self._parked):
            raise Violation("a call or a handler is alive after the block")
        here = trio.lowlevel.current_task()
        tasks = [task.name for nursery in here.child_nurseries for task in nursery.child_tasks]
        if tasks:
            raise Violation(f"tasks are alive after the block: {tasks}")
        operator, statistics = self._operator, self._operator.statistics()
        if statistics.running or statistics.at_gate:
            raise Violation(f"after the block, {statistics.running} run and {statistics.at_gate} are at gates")
        if operator._parts._scheduler.deadlines.running:
            raise Violation("a deadline is left after the block")
        gates = operator._parts._gates
        if gates is not None and (gates.admissions or any(gate.calls for gate in self._gates())):
            raise Violation("a call is still admitted after the block")
        if self._is_first and ended:
            self._check_statistics(statistics)
            if self.setting.is_accounted:
                self._check_account(operator.totals())

    def _check_statistics(self, statistics: Any) -> None:
        setting = self.setting
        ends = statistics.completed + statistics.failed + statistics.timed_out
        if ends != setting.records:
            raise Violation(f"{ends} ends are counted, and there were {setting.records} records")
        if statistics.emitted != sum(name[0] != "watermark" for name in self.outputs.got):
            raise Violation(f"{statistics.emitted} outputs are counted, and {len(self.outputs.got)} were received")
        retried = sum(self._tries.values()) - len(self._tries)
        if statistics.retried != retried:
            raise Violation(f"{statistics.retried} retries are counted, and there were {retried}")
        if statistics.failed - statistics.refused > len(self._failed):
            raise Violation(f"{statistics.failed} failures are counted, and there were {len(self._failed)}")
        held = [each for each in self._operator.snapshot().elements if not isinstance(each.element, Watermark)]
        if held:
            raise Violation(f"all has ended, and the snapshot has {held}")

    # The account: where the time went

    def _account(self, seconds: float) -> None:
        """Count the seconds that pass now, by brute force."""
        view, now = View(self), self._loom.now
        is_gated = bool(view.free and view.startable and not view.is_open)
        waits_for_retries = bool(view.free and view.new and view.must_retry_first)
        lacks = bool(view.free and not view.new and not is_gated)
        if lacks and not view.is_held and not self._rest:
            self._supplied_at = min(self._supplied_at, now)
        self._sums[now + seconds] = self._sums[now] + Totals(
            consumer=seconds * bool(view.leaving),
            busy=seconds * view.used,
            gated=seconds * is_gated,
            retries=seconds * waits_for_retries,
            full=seconds * (lacks and view.is_held),
        )

    def _check_account(self, totals: Totals) -> None:
        """All but the wait for the consumer is counted until the supply has ended."""
        now = self._loom.now
        first = min(self._supplied_at, now)
        last = min((each for each in self._ends if each >= first), default=now)
        if not first <= totals.supply <= last:
            raise Violation(f"totals().supply is {totals.supply:g} s, and it ended between {first:g} and {last:g} s")
        for name in ("busy", "consumer", "gated", "retries", "full"):
            counted = getattr(totals, name)
            summed = getattr(self._sums[now if name == "consumer" else totals.supply], name)
            if abs(counted - summed) > 1e-9:
                raise Violation(f"totals().{name} is {counted:g} s, and it was {summed:g} s")


class View:
    """An operator as seen from outside at one moment.

    Attributes:
        running: The number of slots in use.
        used: The number of calls and handlers that run.
        free: The number of other slots.
        has_room: Whether the buffer has room.
        is_held: Whether the feeder holds an element.
        leaving: The records whose outputs could be received.
        must_retry_first: Whether no new record may start.
        new: The new records that wait for a slot, or for the gate.
        startable: The records that could start if a slot is free, and the gate is open.
        is_open: Whether the gate for all calls is open.
    """

    def __init__(self, world: OperatorWorld) -> None:
        self._world = world
        setting, ledger = world.setting, world._operator._ledger
        self.running = ledger.counters.running
        self.used = len(world._calls) + len(world._handlers)
        self.free = max(0, setting.capacity - self.used)
        self.has_room = ledger.buffered < setting.buffer
        elements = world._operator.snapshot().elements
        records = [each for each in elements if not isinstance(each.element, Watermark)]
        self.is_held = len(records) > ledger.buffered
        accepted = records[: ledger.buffered]
        self.leaving = [_value(each) for each in self._leaving(elements) if _has_outputs(each)]
        self.must_retry_first = world.must_retry_first
        ready = [value for value in self._first_of_keys(accepted) if self._is_ready(value)]
        self.new = [value for value in ready if value not in world._due]
        self.startable = [value for value in ready if value in world._due or not self.must_retry_first]
        self.is_open = setting.gate != "one" or world._gate.is_open(world.now)

    def _leaving(self, elements: Any) -> list[Any]:
        """The completed elements that may be received next."""
        found, mode, waiting = [], self._world.setting.mode, set()
        for each in elements:
            is_wall = isinstance(each.element, Watermark)
            if is_wall and waiting:
                break
            if is_wall or each.results is not None:
                if mode != "keyed" or is_wall or key_of(_value(each)) not in waiting:
                    found.append(each)
            elif mode == "ordered":
                break
            else:
                waiting.add(key_of(_value(each)) if mode == "keyed" else None)
        return found

    def _first_of_keys(self, accepted: list[Any]) -> list[int]:
        """The records without results that their key does not hold back."""
        values = [_value(each) for each in accepted if each.results is None]
        if self._world.setting.mode != "keyed":
            return values
        return list({key_of(value): value for value in reversed(values)}.values())

    def _is_ready(self, value: int) -> bool:
        world = self._world
        if value in world._handlers or any(value in call for call in world._calls.values()) or value in world._failed:
            return False
        gate = world.gates_by_key().get(key_of(value))
        return world._due.get(value, 0.0) <= world.now and (gate is None or gate.is_open(world.now))


class Bit(Gate):
    """An abstract gate: after each end of a call it may close for a second, or until another call ends."""

    def __init__(self, world: OperatorWorld) -> None:
        self.calls = 0
        self._world = world
        self._closed_until = -inf  # inf: until a call ends
        self._closings = world.setting.closings
        self._may_refuse = world.setting.refuses

    def __deepcopy__(self, memo: Any) -> Bit:
        return Bit(self._world)

    def state(self) -> tuple[Any, ...]:
        return self.calls, self._closed_until, self._closings, self._may_refuse

    def is_open(self, now: float) -> bool:
        return self._closed_until <= now or (self._closed_until == inf and not self.calls)

    def delay(self, now: float, weight: float) -> float:
        if self._may_refuse and self._world.choose("the gate does not refuse", "the gate refuses the call"):
            self._may_refuse = False
            raise RefusedError("refused")
        if self.is_open(self._world.now):
            return 0.0
        return self._closed_until - self._world.now

    def started(self, now: float, weight: float) -> None:
        if not self.is_open(self._world.now):
            raise Violation("a call starts while the gate is closed")
        self.calls += 1

    def ended(self, now: float, seconds: float, outcome: Any, weight: float) -> None:
        self.calls -= 1
        if self.calls < 0:
            raise Violation("a call has ended twice in the gate")
        self._closed_until = -inf
        if self._closings and outcome.kind != "cancelled":
            how = self._world.choose("the gate stays open", "the gate closes for 1 s", "the gate closes until an end")
            if how:
                self._closings -= 1
                self._closed_until = self._world.now + 1.0 if how == 1 else inf


class Arriving:
    """A source whose elements arrive when the world lets them."""

    def __init__(self, world: OperatorWorld) -> None:
        self._world = world

    def __aiter__(self) -> Arriving:
        return self

    async def __anext__(self) -> Any:
        await self._world._park(FEED, "")
        if not self._world._rest:
            raise StopAsyncIteration
        return self._world._rest.popleft()


EVENTS = {
    UNWIND: "the cancelled call of {} unwinds",
    HANDLER: "the handler of {} returns",
    READ: "consumer {} goes on",
    READ_DEAD: "the reader of dead letters goes on",
    FEED: "the source goes on",
    PUT: "the caller begins to put",
}


def _has_outputs(each: Any) -> bool:
    return bool(each.results) and not isinstance(each.results[0], DeadLetter)


def _value(each: Any) -> Any:
    if isinstance(each.element, Watermark):
        return name_of(each.element)
    return each.element.value if isinstance(each.element, StreamRecord) else each.element


def _names_in(snapshot: Snapshot) -> str:
    names = [f"{_value(each)}{'' if each.results is None else ' (done)'}" for each in snapshot.elements]
    return ", ".join(names) or "nothing"


def _list(values: list[Any]) -> str:
    return " and ".join(map(str, values))
