"""The world of one operator: its source, its function, its consumers, and everything that may happen to them.

A `Setting` says what is in a world, and which of its freedoms are explored. The invariants are what the operator
promises, as far as possible in terms of what a user can see: outputs, calls, `snapshot()` and `statistics()`. Whatever
ends the block early, the next operator continues with the snapshot and with the rest of the source, up to four times.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Any, ClassVar

import outcome
import trio

from tests.explored.environment import BACKOFF, BaseSetting, Bit, Outputs, key_of, name_of, named
from tests.explored.fingerprint import Fingerprint
from tests.explored.loom import LAST, UNBOUNDED, Event, Exploration, Loom, Violation, World, explore
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
from trio_asyncio_io.gates import PerKey, RefusedError

CALL, UNWIND, HANDLER, READ, READ_DEAD, FEED, PUT = "call", "unwind", "handler", "read", "read dead", "feed", "put"
TEXTS = {
    UNWIND: "the cancelled call of {} unwinds",
    HANDLER: "the handler of {} returns",
    READ: "consumer {} goes on",
    READ_DEAD: "the reader of dead letters goes on",
    FEED: "the source goes on",
    PUT: "the caller begins to put",
}
FROM_OUTSIDE, CALLS = 1, 2  # ranks of events

variable: ContextVar[int | None] = ContextVar("variable", default=None)


@dataclass(frozen=True, kw_only=True)
class Setting(BaseSetting):
    """What is in a world, and what is free in it.

    Attributes:
        gate: It may close after a call: for a second, or until another call ends. With `refuses`, it refuses one.
        source: A "list", a source whose elements arrive "slowly", or a task that calls "put".
        is_slow: Whether a consumer may take its time after each output.
        unwinds_slowly: Whether a cancelled call takes its time.
        sets_variable: Whether each call sets a context variable.
        cancel, interrupt: Whether the block may be cancelled from outside, or Ctrl-C may come.
        stop_after, close_after: The consumer leaves, or closes the output, after this number of outputs.
        is_eager, is_crowded: See `loom.World`.
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


class OperatorWorld(World):
    """The world of one run.

    Attributes:
        outputs: Those that were received.
        calls: By their first record, the records of those that run.
        due: When the backoff of a record ends that waits for its retry.
        source: The elements that were not taken yet.
        is_first: Whether no operator was restored yet.
    """

    operator_type: ClassVar[Any] = AsyncWaitOperator

    def __init__(self, setting: Setting, loom: Loom) -> None:
        super().__init__(loom)
        self.setting = setting
        self.is_eager, self.is_crowded = setting.is_eager, setting.is_crowded
        self.source = deque(setting.elements())
        self.outputs = Outputs(setting)
        self.calls: dict[int, list[int]] = {}
        self.due: dict[int, float] = {}
        self.is_first = True
        self._parked: dict[tuple[Any, ...], trio.lowlevel.Task] = {}
        self._may = {name for name in ("cancel", "interrupt", "stop_after", "close_after") if getattr(setting, name)}
        self._scope = trio.CancelScope()
        self._operator: Any = None
        self._is_inside = False  # the block
        self._is_ending = False  # its body is over
        self._has_left = False  # the consumer
        self._dead: list[int] = []  # the records whose dead letters were received
        self._handlers: set[int] = set()
        self._tries: dict[int, int] = {}
        self._began: dict[int, float] = {}
        self._spent: dict[int, float] = {}  # by record, the seconds of its attempts and backoffs
        self._done: set[int] = set()
        self._failed: set[int] = set()
        self._gate = WorldBit(self)
        self._account = Account(self)

    # The events

    def events(self) -> list[Event]:
        labels = enumerate(sorted(self._parked, key=str), CALLS)
        found = [Event(rank, *each) for rank, label in labels for each in self._events_of(*label)]
        for name, text in (("cancel", "the block is cancelled from outside"), ("interrupt", "Ctrl-C")):
            if self._is_inside and name in self._may:
                found.append(Event(FROM_OUTSIDE, text, partial(self._intervene, name)))
        due = self.loom.next_deadline()
        if due < inf:
            found.append(Event(LAST, f"the clock goes to {due:g}", partial(self._tick, due)))
        return found

    def _events_of(self, kind: str, value: Any, *attempt: int) -> Iterator[tuple[str, Callable[[], object]]]:
        resume = partial(self._resume, (kind, value, *attempt))
        if kind is not CALL:
            yield TEXTS[kind].format(value), resume
            return
        yield f"the call of {value} returns", resume
        if attempt[0] <= self.setting.retries or (self.setting.fails and self.is_first):
            yield f"the call of {value} raises", partial(resume, "error")

    def _resume(self, label: tuple[Any, ...], value: Any = None) -> None:
        trio.lowlevel.reschedule(self._parked.pop(label), outcome.Value(value))

    def _intervene(self, name: str) -> None:
        self._may.discard(name)
        if name == "cancel":
            self._scope.cancel()
        else:
            self.loom.interrupt()

    def _tick(self, due: float) -> None:
        if self.setting.is_accounted and self._is_inside:
            self._account.pass_time(due - self.loom.now)
        self.loom.now = due

    async def _park(self, *label: Any) -> Any:
        """Wait until the event of this label happens."""
        self._parked[label] = trio.lowlevel.current_task()

        def abort(_: Any) -> trio.lowlevel.Abort:
            del self._parked[label]
            return trio.lowlevel.Abort.SUCCEEDED

        return await trio.lowlevel.wait_task_rescheduled(abort)

    def fingerprint(self, fingerprint: Fingerprint) -> None:
        if self._operator is not None:
            fingerprint.add(self._operator)
            fingerprint.add_ledger(self._operator._ledger)
        fingerprint.add(sorted(map(str, self._parked)), sorted(self._may), self.outputs.got, self._dead)
        fingerprint.add(self._is_inside, self.is_first, self._has_left, len(self.subjects))
        fingerprint.add(list(self.calls.values()), self._handlers, self._done, self._failed)
        fingerprint.add(self._tries, self._began, self._spent, self.due)
        fingerprint.add(self.loom.was_interrupted, self._scope.cancel_called)
        fingerprint.add([gate.state() for gate in self._gates()])

    def outcome(self) -> object:
        return tuple(self.outputs.got), tuple(self._dead), tuple(sorted(self._tries.items())), len(self.subjects)

    # The function, and what else is the user's

    async def _function(self, value: Any) -> Any:
        values = value if isinstance(value, list) else [value]
        first = values[0]
        self._check_call(values)
        for each in values:
            self._tries[each] = self._tries.get(each, 0) + 1
            self._began[each] = self.loom.now
            self.due.pop(each, None)
        attempt = self._tries[first]
        if attempt == 1:
            self._account.ends.clear()
        self.calls[first] = values
        self.loom.say(f"the call of {_list(values)} begins")
        try:
            how = await self._park(CALL, first, attempt)
        except trio.Cancelled:
            self._check_cancelled(values)
            if self.setting.unwinds_slowly:
                with trio.CancelScope(shield=True):
                    await self._park(UNWIND, first)
            raise
        finally:
            del self.calls[first]
            self._account.ends.append(self.loom.now)
            for each in values:
                self._spent[each] = self._spent.get(each, 0.0) + self.loom.now - self._began.pop(each)
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
                self.due[each] = self.loom.now + backoff
                self._spent[each] += backoff
            else:
                self._failed.add(each)
        raise OSError(values[0])

    def _result(self, value: int) -> Any:
        results = self.setting.results(value)
        return results[0] if self.setting.flatten is None else results

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
        return self._arriving() if self.setting.source == "slowly" and self.is_first else self._taken()

    def _taken(self) -> Iterator[Any]:
        while self.source:
            yield self.source.popleft()

    async def _arriving(self) -> AsyncIterator[Any]:
        while True:
            await self._park(FEED, "")
            if not self.source:
                return
            yield self.source.popleft()

    # The program

    async def main(self) -> None:
        snapshot = None
        for _ in range(4):
            problem = await self._phase(snapshot)
            self._check_left(ended=problem is None)
            if problem is None:
                break
            snapshot = self._operator.snapshot()
            self.loom.say(f"{problem}: restored with {_names_in(snapshot)}")
            self.is_first, self._has_left, self._scope = False, False, trio.CancelScope()
            self.due.clear()
            self._spent.clear()
        self._check_end()

    async def _phase(self, snapshot: Snapshot | None) -> str | None:
        """One operator, from the beginning of its block to the end. Returns why it has ended early, or None."""
        problem = None
        self._operator = self.operator_type(self._function, source=self._source(), restore=snapshot, **self._options())
        self.subjects.append(self._operator)
        self._is_ending, self._is_inside = False, True
        try:
            with self._scope:
                async with self._operator:
                    try:
                        await self._body()
                    finally:
                        self._is_ending = True
        except (KeyboardInterrupt, Exception, BaseExceptionGroup) as error:
            problem = self._reason(error)
            if problem is None:
                raise
        finally:
            self._is_inside = False
        if self._scope.cancelled_caught:
            return "the cancellation has ended the block"
        return problem or ("the consumer has left" if self._has_left else None)

    def _reason(self, error: BaseException) -> str | None:
        """Why this exception may leave the block, or None."""
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if isinstance(error, KeyboardInterrupt) and self.loom.was_interrupted:
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
        if self.is_first:
            await self._park(PUT, "")
        while self.source:
            try:
                await self._operator.put(self.source[0])
            except (trio.ClosedResourceError, trio.BrokenResourceError):
                return
            self.source.popleft()
        self._operator.end_input()

    async def _consume(self, number: int) -> None:
        async for output in self._operator.output:
            name = name_of(output)
            self.outputs.receive(name)
            self.loom.say(f"{named(name)} is received")
            for name in ("close_after", "stop_after"):
                if name in self._may and len(self.outputs.got) == getattr(self.setting, name):
                    self._may.discard(name)
                    self._has_left = True
                    if name == "close_after":
                        await self._close()
                    return
            if self.setting.is_slow:
                await self._park(READ, number)

    async def _close(self) -> None:
        self._operator.output.close()
        try:
            await self._operator.output.receive()
        except trio.ClosedResourceError:
            return
        raise Violation("something was received from a closed channel")

    async def _consume_dead(self) -> None:
        async for letter in self._operator.output.dead_letters:
            value = letter.element.value if self.setting.walls else letter.element
            if value in self._dead or value in self._done:
                raise Violation(f"a dead letter of {value}, which had its end before")
            self._dead.append(value)
            self.loom.say(f"the dead letter of {value} is received")
            if self.setting.is_slow:
                await self._park(READ_DEAD, "")

    # The invariants of a call

    def _check_call(self, values: list[int]) -> None:
        setting, running = self.setting, [each for call in self.calls.values() for each in call]
        for value in values:
            setting.check_call(value, running, self._done)
            if self.due.get(value, 0.0) > self.loom.now:
                raise Violation(f"the retry of {value} begins before the end of its backoff")
        if self._is_ending:
            raise Violation(f"the call of {_list(values)} begins after the body of the block")
        if values[0] not in self._tries:
            self._check_first_call(values)
        if len(self.calls) >= setting.capacity:
            raise Violation(f"{len(self.calls) + 1} calls run, and the capacity is {setting.capacity}")
        if setting.sets_variable:
            if variable.get() not in ({None, values[0]} if setting.retries else {None}):
                raise Violation(f"the call of {values[0]} has the context variable of {variable.get()}")
            variable.set(values[0])

    def _check_first_call(self, values: list[int]) -> None:
        overtaken = [each for each in range(values[0]) if self._could_begin(each)]
        if overtaken:
            raise Violation(f"the call of {_list(values)} begins before that of {_list(overtaken)}")
        if self.setting.must_retry_first(self.due):
            raise Violation(f"the call of {_list(values)} begins while {_list(list(self.due))} wait for their retry")

    def _could_begin(self, value: int) -> bool:
        """Whether the first call of a record that is older than one that begins must have begun before."""
        setting = self.setting
        if value in self._tries or not self.is_first or setting.refuses or setting.gate == "per key":
            return False
        same_key = [each for each in range(value) if key_of(each) == key_of(value)]
        return setting.mode != "keyed" or all(each in self._done for each in same_key)

    def _check_cancelled(self, values: list[int]) -> None:
        """A call is cancelled at its deadline, or because the block ends."""
        due = self._deadline(values)
        if self.loom.now > due:
            raise Violation(f"the call of {_list(values)} is cancelled {self.loom.now - due:g} s after its deadline")
        is_ending = self._scope.cancel_called or not self._operator._ledger.may_start
        if self.loom.now < due and not self.setting.group and not is_ending:
            raise Violation(f"the call of {_list(values)} is cancelled {due - self.loom.now:g} s before its deadline")

    def _deadline(self, values: list[int]) -> float:
        """Waits for a slot or a gate do not count towards the timeout."""
        return min(self._began[each] - self._spent.get(each, 0.0) for each in values) + self.setting.timeout

    # The invariants at any moment, and at quiescence

    def check(self, *, is_quiescent: bool) -> None:
        if self._operator is None or not self._is_inside:
            return
        ledger = self._operator._ledger
        if ledger.buffered > self.setting.buffer:
            raise Violation(f"{ledger.buffered} records are held, and the buffer is {self.setting.buffer}")
        if not 0 <= ledger.counters.running <= self.setting.capacity:
            raise Violation(f"{ledger.counters.running} slots are in use, and the capacity is {self.setting.capacity}")
        if is_quiescent and ledger.may_start:
            self._check_work_conservation(View(self))

    def _check_work_conservation(self, view: View) -> None:
        """Nothing that could go on waits."""
        setting, now = self.setting, self.loom.now
        if view.running != view.used:
            raise Violation(f"{view.running} slots are in use, and {view.used} calls and handlers run")
        if view.free and view.startable and view.is_open:
            raise Violation(f"a slot is free, and {_list(view.startable)} could start")
        if view.has_room and self.source and setting.source == "list":
            raise Violation("the buffer has room, and the source is not read")
        if view.has_room and view.is_held:
            raise Violation("the buffer has room, and the feeder holds an element")
        busy = sum(label[0] is READ for label in self._parked)
        if view.leaving and busy < setting.consumers and not self._has_left:
            raise Violation(f"{_list(view.leaving)} could be received, and a consumer waits")
        if setting.timeout < inf and not setting.unwinds_slowly:
            for values in self.calls.values():
                if now >= self._deadline(values):
                    raise Violation(f"the call of {_list(values)} goes on after its deadline")

    @property
    def busy(self) -> set[int]:
        """The records that cannot start: they have failed, or a call or a handler of theirs runs."""
        return {*self._failed, *self._handlers, *(each for call in self.calls.values() for each in call)}

    def is_open(self, key: Any = None) -> bool:
        """Whether the gate of a key is open; without one, whether that for all calls is."""
        gate = self._gate if key is None else self._gates_by_key().get(key)
        return gate is None or gate.is_open

    def _gates_by_key(self) -> dict[Any, WorldBit]:
        if self.setting.gate != "per key" or self._operator is None:
            return {}
        families = self._operator._parts._gates._per_key.copies
        return {key: gate for copies in families for key, gate in copies.items()}

    def _gates(self) -> list[WorldBit]:
        return [self._gate, *self._gates_by_key().values()]

    # The invariants after a block

    def _check_left(self, *, ended: bool) -> None:
        if self.calls or any(label[0] in {CALL, UNWIND, HANDLER} for label in self._parked):
            raise Violation("a call or a handler is alive after the block")
        here = trio.lowlevel.current_task()
        tasks = [task.name for nursery in here.child_nurseries for task in nursery.child_tasks]
        if tasks:
            raise Violation(f"tasks are alive after the block: {tasks}")
        operator, statistics = self._operator, self._operator.statistics()
        if statistics.running or statistics.at_gate:
            raise Violation(f"after the block, {statistics.running} run and {statistics.at_gate} are at gates")
        if operator._parts._scheduler.running.scopes:
            raise Violation("a deadline is left after the block")
        gates = operator._parts._gates
        if gates is not None and (gates.admissions or any(gate.calls for gate in self._gates())):
            raise Violation("a call is still admitted after the block")
        if self.is_first and ended:
            self._check_statistics(statistics)
            if self.setting.is_accounted:
                self._account.check(operator.totals())

    def _check_statistics(self, statistics: Any) -> None:
        retried = sum(self._tries.values()) - len(self._tries)
        received = sum(name[0] != "watermark" for name in self.outputs.got)
        for name, counted, number in (
            ("ends", statistics.completed + statistics.failed + statistics.timed_out, self.setting.records),
            ("outputs", statistics.emitted, received),
            ("retries", statistics.retried, retried),
        ):
            if counted != number:
                raise Violation(f"{counted} {name} are counted, and there were {number}")
        if statistics.failed - statistics.refused > len(self._failed):
            raise Violation(f"{statistics.failed} failures are counted, and there were {len(self._failed)}")
        held = [each for each in self._operator.snapshot().elements if not isinstance(each.element, Watermark)]
        if held:
            raise Violation(f"all has ended, and the snapshot has {held}")

    def _check_end(self) -> None:
        """After the last block."""
        self.outputs.check_end(self._is_excused)
        most = (1 + self.setting.retries) * len(self.subjects) * (1 + 2 * self.setting.group_split)
        for value, tries in self._tries.items():
            if tries > most:
                raise Violation(f"{value} was called {tries} times")

    def _is_excused(self, value: int) -> bool:
        """Whether a record may have no output."""
        if value in self._done:
            return False
        if self.setting.on_error == "dead_letter":
            return value in self._dead
        return value in self._failed or self.setting.timeout < inf or self.setting.refuses


class View:
    """An operator as seen from outside at one moment.

    Attributes:
        running: The number of slots in use.
        used: The number of calls and handlers that run.
        free: The number of other slots.
        has_room: Whether the buffer has room.
        is_held: Whether the feeder holds an element.
        leaving: The records whose outputs could be received.
        new: The new records that wait for a slot, or for the gate.
        startable: The records that could start if a slot is free, and the gate is open.
        is_open: Whether the gate for all calls is open.
    """

    def __init__(self, world: OperatorWorld) -> None:
        setting, operator, due = world.setting, world._operator, world.due
        elements = operator.snapshot().elements
        records = [each for each in elements if not isinstance(each.element, Watermark)]
        buffered = operator._ledger.buffered
        unfinished = [_value(each) for each in records[:buffered] if each.results is None]
        ready = setting.ready(unfinished, world.busy, due, world.loom.now, world.is_open)
        self.running = operator._ledger.counters.running
        self.used = len(world.calls) + len(world._handlers)
        self.free = max(0, setting.capacity - self.used)
        self.has_room = buffered < setting.buffer
        self.is_held = len(records) > buffered
        self.leaving = [_value(each) for each in _leaving(elements, setting.mode) if _has_outputs(each)]
        self.new = [value for value in ready if value not in due]
        self.startable = [value for value in ready if value in due or not setting.must_retry_first(due)]
        self.is_open = setting.gate != "one" or world.is_open()


class Account:
    """Where the time went, by brute force.

    Attributes:
        ends: The instants at which calls have ended, since the last record has started.
    """

    def __init__(self, world: OperatorWorld) -> None:
        self.ends: list[float] = []
        self._world = world
        self._supplied_at = inf  # since then, a slot is free for which no record is left
        self._sums = {0.0: Totals()}  # by instant

    def pass_time(self, seconds: float) -> None:
        """The clock goes on by these seconds."""
        world, view, now = self._world, View(self._world), self._world.loom.now
        is_gated = bool(view.free and view.startable and not view.is_open)
        lacks = bool(view.free and not view.new and not is_gated)
        if lacks and not view.is_held and not world.source:
            self._supplied_at = min(self._supplied_at, now)
        self._sums[now + seconds] = self._sums[now] + Totals(
            consumer=seconds * bool(view.leaving),
            busy=seconds * view.used,
            gated=seconds * is_gated,
            retries=seconds * bool(view.free and view.new and world.setting.must_retry_first(world.due)),
            full=seconds * (lacks and view.is_held),
        )

    def check(self, totals: Totals) -> None:
        """All but the wait for the consumer is counted until the supply has ended."""
        now = self._world.loom.now
        first = min(self._supplied_at, now)
        last = min((each for each in self.ends if each > first), default=now)
        if not first <= totals.supply <= last:
            raise Violation(f"totals().supply is {totals.supply:g} s, and it ended between {first:g} and {last:g} s")
        for name in ("busy", "consumer", "gated", "retries", "full"):
            counted = getattr(totals, name)
            summed = getattr(self._sums[now if name == "consumer" else totals.supply], name)
            if abs(counted - summed) > 1e-9:
                raise Violation(f"totals().{name} is {counted:g} s, and it was {summed:g} s")


class WorldBit(Bit):
    """After each end of a call, it may close for a second, or until another call ends."""

    def __init__(self, world: OperatorWorld) -> None:
        super().__init__()
        self._world = world
        self._closed_until = -inf  # inf: until a call ends
        self._closings = world.setting.closings
        self._may_refuse = world.setting.refuses

    def __deepcopy__(self, memo: Any) -> WorldBit:
        return WorldBit(self._world)

    def state(self) -> tuple[Any, ...]:
        return self.calls, self._closed_until, self._closings, self._may_refuse

    @property
    def is_open(self) -> bool:
        return self._closed_until <= self._world.loom.now or (self._closed_until == inf and not self.calls)

    def delay(self, now: float, weight: float) -> float:
        if self._may_refuse and self._world.loom.choose("the gate does not refuse", "the gate refuses the call"):
            self._may_refuse = False
            raise RefusedError("refused")
        return 0.0 if self.is_open else self._closed_until - self._world.loom.now

    def ended(self, now: float, seconds: float, outcome: Any, weight: float) -> None:
        super().ended(now, seconds, outcome, weight)
        self._closed_until = -inf
        if self._closings and outcome.kind != "cancelled":
            texts = "the gate stays open", "the gate closes for 1 s", "the gate closes until an end"
            how = self._world.loom.choose(*texts)
            if how:
                self._closings -= 1
                self._closed_until = self._world.loom.now + 1.0 if how == 1 else inf


def explore_world(setting: Setting, world: Callable[[Setting, Loom], World] = OperatorWorld, **how: Any) -> Exploration:
    """Explore a world of this setting. See `loom.explore` for the other parameters."""
    return explore(partial(world, setting), bound=setting.bound, **how)


def _leaving(elements: Any, mode: str) -> Iterator[Any]:
    """The completed elements of a snapshot that may be received next."""
    waiting: set[int | None] = set()  # the keys of older elements without results
    for each in elements:
        is_wall = isinstance(each.element, Watermark)
        key = key_of(_value(each)) if mode == "keyed" and not is_wall else None
        if is_wall and waiting:
            return
        if not is_wall and each.results is None:
            waiting.add(key)
        elif is_wall or mode == "unordered" or key not in waiting:
            yield each


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
