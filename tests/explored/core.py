"""The pure core in every interleaving: ledger, order, scheduler and groups, without Trio and without tasks.

`Core` does what the operator's tasks do, one step at a time, and lists the steps that are possible now. `explore_core`
takes all of them, breadth first. A core cannot be copied cheaply, but it is fast, so it is made again by replaying its
steps. Paths meet where all fields are equal: see `Walk`. So the number of states is finite, and the shortest trace of a
violation is the first one that is found.

Beside the shell (`world.py`), this reaches more: three and four records with all steps in all orders, a gate that opens
and closes at any moment, and a stop and a restore between any two steps.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import repeat
from math import inf
from typing import Any

from tests.explored.loom import Exploration, Violation, Walk
from tests.explored.surroundings import Outputs, Surroundings, key_of, name_of, named
from tests.explored.world import IGNORED
from trio_asyncio_io import Snapshot
from trio_asyncio_io._core.admission import GateLine, SharedGate
from trio_asyncio_io._core.gate import CANCELLED, OK, Gate, RefusedError
from trio_asyncio_io._core.groups import Grouping, half_of
from trio_asyncio_io._core.observation import ledger_for
from trio_asyncio_io._core.options import Options
from trio_asyncio_io._core.scheduler import Scheduler

__all__ = ["Core", "CoreSetting", "explore_core"]

BACKOFF = 1.0
Step = tuple[Any, ...]


@dataclass(frozen=True, kw_only=True)
class CoreSetting(Surroundings):
    """What is in a core, and what is free in it.

    Attributes:
        gate: It may close, and open again, at any moment.
        refuses: Whether it may refuse calls for a while.
        has_dead_letters: Whether records that fail become dead letters. Otherwise they are skipped.
        stops, restores: How often the operator may be stopped, with its calls cancelled, and restored; and how often a
            snapshot may be taken between two steps and restored.
        is_urgent: Whether time passes only when nothing else can happen, and what may be emitted leaves at once.
            Otherwise, the event loop may be blocked, and the emitter late.
    """

    has_dead_letters: bool = False
    stops: int = 0
    restores: int = 0
    is_urgent: bool = False


@cache
def _options(setting: CoreSetting) -> Options:
    return Options(
        setting.timeout,
        mode=setting.mode,
        capacity=setting.capacity,
        buffer=setting.buffer,
        key=key_of if setting.mode == "keyed" else None,
        on_error="dead_letter" if setting.has_dead_letters else "skip",
        group=setting.group or None,
    )


class Core:
    """The core of one operator, between two steps."""

    def __init__(self, setting: CoreSetting) -> None:
        self.setting = setting
        self._source = setting.elements()
        self._outputs = Outputs(setting)
        self._dead: list[int] = []
        self._done: set[int] = set()
        self._failed: set[int] = set()
        self._closings = setting.closings if setting.gate else 0
        self._may_refuse = setting.refuses
        self._stops, self._restores = setting.stops, setting.restores
        self._begin(None)

    def _begin(self, restored: Snapshot | None) -> None:
        setting, options = self.setting, _options(self.setting)
        options = options if restored is None else replace(options, restore=restored)
        self._ledger = ledger_for(options, options.key)
        self._gates = Gates(self) if setting.gate else None
        self.scheduler = Scheduler(
            self._ledger,
            setting.capacity,
            setting.timeout,
            grouping=Grouping(setting.group, 0.0, splits=setting.group_split),
            gates=self._gates,
            on_failure=_fail,
        )
        self._taken = restored.taken if restored else 0
        self._running: dict[Any, None] = {}
        self._unread: deque[Any] = deque()
        self._now = 0.0
        self._ran: dict[int, float] = {}  # by sequence, how long the time of a record has run
        self._began: dict[int, float] = {}
        self._due: dict[int, float] = {}  # by value, of the records that wait for their retry

    # What may happen

    def steps(self) -> list[Step]:
        """The steps that are possible now, those of time last."""
        ledger = self._ledger
        if self.setting.is_urgent and ledger.order.has_completed():
            return [("poll",)]
        found = [*self._inputs(), *self._starts(), *self._ends()]
        found += [("poll",)] * ledger.order.has_completed()
        found += [("receive",)] * bool(ledger.leaving)
        found += [("receive dead letter",)] * bool(self._unread)
        return [*found, *self._interventions()]

    def _inputs(self) -> list[Step]:
        if self._ledger.backlog:
            return [("accept held",)]
        if self._taken < len(self._source):
            return [("accept",)]
        return [] if self._ledger.input_ended else [("end input",)]

    def _starts(self) -> list[Step]:
        """As of the workers: they take what has its slot before they ask what else may start."""
        if self.scheduler.starts:
            return [("take",)]
        if self._ledger.counters.running == self.setting.capacity:
            return []
        if not self.scheduler.is_plain:
            return [("assign",)]
        return [("start",)] * bool(self._ledger.jobs)

    def _ends(self) -> list[Step]:
        found: list[Step] = []
        for call in self._running:
            due, name = call.since + self.setting.timeout, (call.sequence,)
            if self._now <= due:  # at its deadline, it may do both
                found.append(("returns", *name))
            if self._now < due and (self.setting.fails or call.attempts <= self.setting.retries):
                found.append(("raises", *name))
            if self._now >= due:
                found.append(("expires", *name))
        return found

    def _interventions(self) -> list[Step]:
        found: list[Step] = []
        for key, gate in () if self._gates is None else self._gates.by_key():
            found += [("close", key)] * (gate.is_open and self._closings > 0)
            found += [("open", key)] * (not gate.is_open)
            found += [("refuse", key)] * (self._may_refuse and not gate.refuses)
            found += [("admit again", key)] * gate.refuses
        found += [("stop",)] * (self._stops > 0)
        found += [("restore",)] * (self._restores > 0)
        is_late = any(self._now >= call.since + self.setting.timeout for call in self._running)
        if self._next_instant() < inf and not is_late and not (self.setting.is_urgent and self._has_urgent()):
            found.append(("tick",))
        return found

    def _has_urgent(self) -> bool:
        """Whether something happens at this instant, whatever the calls and the consumer do."""
        ledger, has_slot = self._ledger, self._ledger.counters.running < self.setting.capacity
        return (
            ((bool(ledger.backlog) or self._taken < len(self._source)) and ledger.has_room())
            or (self._taken == len(self._source) and not ledger.input_ended)
            or len(self.scheduler.starts) > 0
            or (has_slot and bool(self._startable()))
        )

    def _next_instant(self) -> float:
        instants = [call.since + self.setting.timeout for call in self._running] + list(self._due.values())
        return min((at for at in instants if at > self._now), default=inf)

    # What happens

    def do(self, step: Step) -> bool:
        """Take a step. Returns whether it has an effect that a task would see."""
        name, *arguments = step
        has_effect = getattr(self, f"_{name.replace(' ', '_')}")(*arguments)
        self._check()
        return has_effect is not False

    def _accept(self) -> bool:
        is_accepted = self._ledger.accept(self._source[self._taken], self._now) is not None
        self._taken += is_accepted
        return is_accepted

    def _accept_held(self) -> bool:
        return self._ledger.accept_held(self._now) is not None

    def _end_input(self) -> None:
        self._ledger.end_input(self._now)

    def _start(self) -> None:
        self._call(self._ledger.start(self._now))

    def _receive(self) -> None:
        name = name_of(self._ledger.receive())
        if name[0] != "watermark" and name[0] not in self._done:
            raise Violation(f"{named(name)} is received, and its call has not returned")
        self._outputs.receive(name)

    def _poll(self) -> None:
        polled = self._ledger.poll(self._now, self._ledger.bound)
        self._unread += [each for each in polled if not each.results and self._ledger.dead_letter_of(each)]

    def _tick(self) -> None:
        self._now = self._next_instant()
        if not self.scheduler.is_plain:
            self.scheduler.advance(self._now)

    def _restore(self) -> None:
        self._restores -= 1
        self._begin(self._ledger.snapshot())

    def _set_gate(self, field: str, key: Any, *, value: bool) -> None:
        """A gate opens or closes, refuses calls or admits them again."""
        assert self._gates is not None
        setattr(dict(self._gates.by_key())[key], field, value)
        self.scheduler.change(self._gates.of_keys.get(key, self._gates.line))

    def _close(self, key: Any) -> None:
        self._closings -= 1
        self._set_gate("is_open", key, value=False)

    def _open(self, key: Any) -> None:
        self._set_gate("is_open", key, value=True)

    def _refuse(self, key: Any) -> None:
        self._may_refuse = False
        self._set_gate("refuses", key, value=True)

    def _admit_again(self, key: Any) -> None:
        self._set_gate("refuses", key, value=False)

    def _assign(self) -> bool:
        self.scheduler.assign(self._now)
        if self.scheduler.starts:
            return True
        left = self._startable()
        if left:
            raise Violation(f"a slot is free, and {left} could start")
        return False

    def _take(self) -> None:
        call, _, refusal = self.scheduler.take(self._now)
        if refusal is None:
            self._call(call)
            return
        for entry in call.records:
            self._ledger.fail(entry, refusal, self._now)
            self._give_up(entry, refusal)
        self._ledger.end_call(self._now)

    def _call(self, call: Any) -> None:
        ledger, now = self._ledger, self._now
        if len(self._running) >= self.setting.capacity:
            raise Violation("more calls than the capacity")
        if call.attempts:
            ledger.retry(call)
            self.scheduler.deadlines.set_retry(call, None)
        else:
            self.scheduler.deadlines.running[call] = None
        for each in {id(each): each for each in (call, *call.records)}.values():
            each.attempts += 1
        running = [entry.value for other in self._running for entry in other.records]
        for entry in call.records:
            self.setting.check_call(entry.value, running, self._done)
            if now >= entry.since + self.setting.timeout or self._due.pop(entry.value, now) > now:
                raise Violation(f"an attempt of {entry.value} begins at its deadline, or in its backoff")
            self._began[entry.sequence] = now
        self._running[call] = None

    def _end_call(self, call: Any, outcome: Any) -> None:
        del self._running[call]
        self.scheduler.deadlines.running.pop(call, None)
        if self._gates is not None:
            self._gates.end(call, outcome, self._now)
        for entry in call.records:
            ran = self._ran[entry.sequence] = (
                self._ran.get(entry.sequence, 0.0) + self._now - self._began.pop(entry.sequence)
            )
            if ran > self.setting.timeout:
                raise Violation(f"{entry.value} has run for {ran:g} s of {self.setting.timeout:g} s")

    def _returns(self, sequence: int) -> None:
        self._end(sequence, "returns")

    def _raises(self, sequence: int) -> None:
        self._end(sequence, "raises")

    def _expires(self, sequence: int) -> None:
        self._end(sequence, "expires")

    def _end(self, sequence: int, how: str) -> None:
        ledger, now = self._ledger, self._now
        call = next(call for call in self._running if call.sequence == sequence)
        self._end_call(call, OK)
        for entry, half in zip(call.records, self.scheduler.grouping.halves(call), strict=True):
            if how == "returns":
                number = 1 if self.setting.flatten is None else self.setting.flatten[entry.value]
                self._done.add(entry.value)
                ledger.complete(entry, tuple((entry.value, part) for part in range(number)), now)
            elif how == "expires" and entry.since + self.setting.timeout <= now:
                self._time_out(entry)
            else:
                self._fail(entry, OSError(entry.value), half_of(call), half)
        ledger.end_call(now)

    def _fail(self, entry: Any, error: Exception, part: Any, half: Any) -> None:
        if entry.attempts <= self.setting.retries:
            seconds = BACKOFF
        elif half is not None:
            seconds, part = 0.0, half
        else:
            self._ledger.fail(entry, error, self._now)
            self._give_up(entry, error)
            return
        if self.scheduler.retry(entry, None, seconds, self._now, error, half=part):
            self._due[entry.value] = self._now + seconds
        else:
            self._time_out(entry)

    def _time_out(self, entry: Any) -> None:
        self._ledger.time_out(entry, self._now)
        self._give_up(entry, TimeoutError())

    def _give_up(self, entry: Any, error: Exception) -> None:
        self._failed.add(entry.value)
        if self.setting.has_dead_letters:
            self._ledger.dead_letter(entry, error, self._now)
        self._ledger.finish(entry, (), self._now)

    def _stop(self) -> None:
        ledger = self._ledger
        self._stops -= 1
        ledger.stop_starting()
        for call in list(self._running):
            self._end_call(call, CANCELLED)
            for entry in call.records:
                ledger.cancel(entry, self._now)
            ledger.end_call(self._now)
        self.scheduler.close(self._now)
        if ledger.counters.running or ledger.counters.at_gate:
            raise Violation(f"after a stop, {ledger.counters.running} run, and {ledger.counters.at_gate} are at gates")
        if self._gates is not None and self._gates.has_calls():
            raise Violation("a call is still admitted after a stop")
        self._begin(ledger.snapshot())

    # What is promised

    def _check(self) -> None:
        ledger = self._ledger
        if not 0 <= ledger.buffered <= self.setting.buffer:
            raise Violation(f"{ledger.buffered} records are held, and the buffer is {self.setting.buffer}")
        if ledger.counters.running != len(self._running) + len(self.scheduler.starts):
            raise Violation(f"{ledger.counters.running} slots are in use, and {len(self._running)} calls run")

    def _startable(self) -> list[int]:
        """The records that could start in a free slot."""
        setting, found, keys = self.setting, [], set()
        waiting = [entry for entry in self._ledger.order.entries() if not entry.is_done]
        taken = [entry for call, *_ in self.scheduler.starts for entry in call.records]
        running = [*taken, *(entry for call in self._running for entry in call.records)]
        raised = len(self._due) >= setting.capacity * (setting.group or 1) and setting.gate != "per key"
        for entry in waiting:
            key = key_of(entry.value)
            is_first = setting.mode != "keyed" or key not in keys
            keys.add(key)
            if entry in running or not is_first or (self._gates is not None and not self._gates.admits(key)):
                continue
            if self._due.get(entry.value, inf if raised else 0.0) <= self._now:
                found.append(entry.value)
        return found

    def _receive_dead_letter(self) -> None:
        entry = self._unread.popleft()
        if entry.value in self._dead:
            raise Violation(f"the dead letter of {entry.value} is received twice")
        self._dead.append(entry.value)
        self._ledger.receive_dead_letter(entry)

    def check_end(self) -> None:
        """Nothing can happen any more."""
        if self._gates is not None and not all(gate.is_open and not gate.refuses for _, gate in self._gates.by_key()):
            return
        ledger = self._ledger
        self._outputs.check_end((self._failed - self._done).__contains__)
        if self.setting.has_dead_letters and self._failed - self._done - set(self._dead):
            raise Violation("a record that has failed has no dead letter")
        if not ledger.is_drained() or ledger.buffered or ledger.counters.running or ledger.counters.at_gate:
            raise Violation(f"at the end, {ledger.buffered} records are held and {ledger.counters.running} run")
        if ledger.snapshot().elements:
            raise Violation(f"at the end, the snapshot has {ledger.snapshot().elements}")
        if self._gates is not None and self._gates.has_calls():
            raise Violation("at the end, a call is still admitted")

    def state(self, ignored: frozenset[str] = frozenset()) -> int:
        """A number that is equal for equal states."""
        ledger = self._ledger
        walk, flow = Walk(IGNORED | ignored, {}), ledger.flow
        walk.add(ledger, self.scheduler, flow.backoffs, flow.spent, flow.at_keys, flow.room.is_on, flow.input_end)
        walk.add(ledger.counters.running, ledger.counters.at_gate, list(self._running), self._unread)
        got = self._outputs.got
        walk.add(sorted(got, key=str), got[-1:], self._dead, sorted(self._done), sorted(self._failed))
        ran = {sequence: seconds for sequence, seconds in self._ran.items() if sequence in ledger.flow.backoffs}
        walk.add(self._taken, self._now, ran, self._began, self._due)
        walk.add(self._closings, self._may_refuse, self._stops, self._restores)
        if self._gates is not None:
            walk.add([(key, *gate.state()) for key, gate in self._gates.by_key()], sorted(self._gates.admissions))
        return hash(repr(walk.written))


class Bit(Gate):
    """An abstract gate: open or closed, as the steps say."""

    def __init__(self, has_calls: Callable[[], bool]) -> None:
        self.is_open, self.refuses, self.calls = True, False, 0
        self._has_calls = has_calls

    def state(self) -> tuple[Any, ...]:
        return self.is_open, self.refuses, self.calls

    def delay(self, now: float, weight: float) -> float:
        if self.refuses:
            raise RefusedError("refused")
        return 0.0 if self.is_open else inf if self._has_calls() else 1.0

    def started(self, now: float, weight: float) -> None:
        if not self.is_open:
            raise Violation("a call starts while its gate is closed")
        self.calls += 1

    def ended(self, now: float, seconds: float, outcome: Any, weight: float) -> None:
        self.calls -= 1
        if self.calls < 0:
            raise Violation("a call has ended twice in its gate")


class Gates:
    """Does what the operator's `Gates` does, without Trio."""

    is_idle = False

    def __init__(self, core: Core) -> None:
        self._core = core
        self.has_keys = core.setting.gate == "per key"
        self._common = [] if self.has_keys else [self._new()]
        self.of_keys: dict[Any, GateLine] = {}
        self.line = self._line(self._common)
        self.admissions: dict[int, Any] = {}

    def _new(self) -> Bit:
        return Bit(lambda: bool(self._core._running))

    def _line(self, gates: list[Bit], common: GateLine | None = None) -> GateLine:
        line = GateLine(gates, common, count_running=lambda: 1)
        line.open([SharedGate(gate) for gate in gates])
        return line

    def line_of(self, value: object) -> GateLine:
        if not self.has_keys:
            return self.line
        key = key_of(value)  # type: ignore[arg-type]
        if key not in self.of_keys:
            self.of_keys[key] = self._line([self._new()], self.line)
        return self.of_keys[key]

    def by_key(self) -> list[tuple[Any, Bit]]:
        gates: list[tuple[Any, Any]] = [(key, line.gates[0].gate) for key, line in self.of_keys.items()]
        return [*((None, gate) for gate in self._common), *gates]

    def admits(self, key: Any) -> bool:
        gate = dict(self.by_key()).get(key if self.has_keys else None)
        return gate is None or (gate.is_open and not gate.refuses)

    def has_calls(self) -> bool:
        return len(self.admissions) > 0 or any(gate.calls for _, gate in self.by_key())

    def end(self, call: Any, outcome: Any, now: float) -> None:
        admission = self.admissions.pop(call.sequence, None)
        if admission is None:
            raise Violation("a call ends that was not admitted")
        admission.end(repeat(outcome), now)
        self.line.held_until = -inf
        if admission.line is not self.line:
            self._core.scheduler.change(admission.line)


def explore_core(
    setting: CoreSetting, *, ignored: frozenset[str] = frozenset(), is_pruned: bool = True, most_states: int = 100_000
) -> Exploration:
    """Take all steps in all orders, breadth first. `schedules` is the number of steps that were taken."""
    found, seen, todo = Exploration(), {Core(setting).state(ignored)}, deque[tuple[Step, ...]]([()])
    while todo and len(seen) < most_states:
        path, step = todo.popleft(), None
        try:
            core, has_moved = _replayed(setting, path), False
            for number, step in enumerate(core.steps()):
                core = _replayed(setting, path) if number else core
                is_seen = core.do(step)
                has_moved |= is_seen and step[0] not in INTERVENTIONS
                found.schedules += 1
                state = core.state(ignored)
                if state not in seen or not is_pruned:
                    seen.add(state)
                    todo.append((*path, step))
            step = None
            if not has_moved:
                core = _replayed(setting, path)
                core.check_end()
                found.ends.add((tuple(core._outputs.got), tuple(core._dead), frozenset(core._failed)))
        except (Violation, Exception) as violation:  # noqa: BLE001 - a broken core may raise anything
            found.violation = f"{type(violation).__name__}: {violation}"
            found.trace = [_sentence(each) for each in (*path, *([step] if step else []))]
            break
    found.states, found.is_complete = len(seen), not todo and found.violation is None
    return found


INTERVENTIONS = frozenset({"stop", "restore", "close", "open", "refuse", "admit again"})


def _replayed(setting: CoreSetting, path: Sequence[Step]) -> Core:
    core = Core(setting)
    for step in path:
        core.do(step)
    return core


def _fail(error: Exception, entry: object) -> None:
    raise error


SENTENCES = {
    "accept": "the next element is accepted",
    "accept held": "the element that the feeder holds is accepted",
    "end input": "the input ends",
    "start": "a worker starts the next job",
    "assign": "a worker asks what may start",
    "take": "a worker takes a call",
    "returns": "the call of {} returns",
    "raises": "the call of {} raises",
    "expires": "the deadline of {} expires",
    "poll": "what may be emitted leaves",
    "receive": "the consumer receives",
    "receive dead letter": "a dead letter is received",
    "tick": "the clock goes to the next instant",
    "stop": "the block ends, and the operator is restored",
    "restore": "a snapshot is taken and restored",
    "close": "the gate closes ({})",
    "open": "the gate opens ({})",
    "refuse": "the gate refuses calls ({})",
    "admit again": "the gate refuses no more calls ({})",
}


def _sentence(step: Step) -> str:
    return SENTENCES[step[0]].format(*step[1:])
