"""The pure core in every interleaving: ledger, order, scheduler and groups, without Trio and without tasks.

`Core` does what the operator's tasks do, one step at a time, and lists the steps that are possible now. `explore_core`
takes all of them, breadth first, so the first trace of a violation is the shortest. A core cannot be copied cheaply,
but it is fast: it is made again by replaying its steps. Paths meet where the fingerprints are equal.

Beside the shell (`world.py`), this reaches more: three and four records with all steps in all orders, a gate that opens
and closes at any moment, and a stop and a restore between any two steps.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from itertools import repeat
from math import inf
from typing import Any

from tests.explored.environment import BACKOFF, BaseSetting, Bit, Outputs, key_of, name_of, named
from tests.explored.fingerprint import Fingerprint
from tests.explored.loom import Exploration, Violation
from trio_asyncio_io import Snapshot
from trio_asyncio_io._core.admission import GateLine, SharedGate
from trio_asyncio_io._core.gate import CANCELLED, OK, RefusedError
from trio_asyncio_io._core.groups import Grouping
from trio_asyncio_io._core.observation import ledger_for
from trio_asyncio_io._core.options import Options
from trio_asyncio_io._core.scheduler import Scheduler

Step = tuple[Any, ...]  # the name of a method of `Core`, and its arguments


@dataclass(frozen=True, kw_only=True)
class CoreSetting(BaseSetting):
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

    # The steps that are possible

    def steps(self) -> list[Step]:
        """The steps that are possible now."""
        has_completed = self._ledger.order.has_completed()
        if self.setting.is_urgent and has_completed:
            return [("emit",)]
        found = [*self._inputs(), *self._starts(), *self._ends(), *self._interventions()]
        found += [("emit",)] * has_completed
        found += [("receive",)] * bool(self._ledger.leaving)
        found += [("receive_dead_letter",)] * bool(self._unread)
        found += [("tick",)] * self._may_tick()
        return found

    def _inputs(self) -> list[Step]:
        if self._ledger.backlog:
            return [("accept_held",)]
        if self._taken < len(self._source):
            return [("accept",)]
        return [] if self._ledger.input_ended else [("end_input",)]

    def _starts(self) -> list[Step]:
        """As the workers do: they take what has its slot before the scheduler assigns other slots."""
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
            due = call.since + self.setting.timeout
            if self._now <= due:  # at its deadline, it may do both
                found.append(("end", call.sequence, "returns"))
            if self._now < due and (self.setting.fails or call.attempts <= self.setting.retries):
                found.append(("end", call.sequence, "raises"))
            if self._now >= due:
                found.append(("end", call.sequence, "expires"))
        return found

    def _interventions(self) -> list[Step]:
        found: list[Step] = []
        for key, gate in () if self._gates is None else self._gates.by_key():
            found += [("change_gate", key, "closes")] * (gate.is_open and self._closings > 0)
            found += [("change_gate", key, "opens")] * (not gate.is_open)
            found += [("change_gate", key, "refuses calls")] * (self._may_refuse and not gate.refuses)
            found += [("change_gate", key, "admits calls again")] * gate.refuses
        return [*found, *[("stop",)] * (self._stops > 0), *[("restore",)] * (self._restores > 0)]

    def _may_tick(self) -> bool:
        is_late = any(self._now >= call.since + self.setting.timeout for call in self._running)
        return self._next_instant() < inf and not is_late and not (self.setting.is_urgent and self._is_busy())

    def _is_busy(self) -> bool:
        """Whether something happens at this instant, whatever the calls and the consumer do."""
        ledger, is_left = self._ledger, self._taken < len(self._source)
        return (
            ((bool(ledger.backlog) or is_left) and ledger.has_room())
            or not (is_left or ledger.input_ended)
            or len(self.scheduler.starts) > 0
            or (ledger.counters.running < self.setting.capacity and bool(self._startable()))
        )

    def _next_instant(self) -> float:
        instants = [call.since + self.setting.timeout for call in self._running] + list(self._due.values())
        return min((at for at in instants if at > self._now), default=inf)

    # The steps. The docstring of a method is its sentence in a trace

    def do(self, step: Step) -> bool:
        """Take a step. Returns whether it has an effect that a task would see."""
        name, *arguments = step
        has_effect = getattr(self, name)(*arguments)
        self._check()
        return has_effect is not False

    def accept(self) -> bool:
        """The next element is accepted"""
        is_accepted = self._ledger.accept(self._source[self._taken], self._now) is not None
        self._taken += is_accepted
        return is_accepted

    def accept_held(self) -> bool:
        """The element that the feeder holds is accepted"""
        return self._ledger.accept_held(self._now) is not None

    def end_input(self) -> None:
        """The input ends"""
        self._ledger.end_input(self._now)

    def start(self) -> None:
        """A worker starts the next job"""
        self._begin_call(self._ledger.start(self._now))

    def assign(self) -> bool:
        """The scheduler assigns free slots"""
        self.scheduler.assign(self._now)
        startable = self._startable()
        if startable and not self.scheduler.starts:
            raise Violation(f"a slot is free, and {startable} could start")
        return len(self.scheduler.starts) > 0

    def take(self) -> None:
        """A worker takes a call"""
        call, _, refusal = self.scheduler.take(self._now)
        if refusal is None:
            self._begin_call(call)
            return
        for entry in call.records:
            self._ledger.fail(entry, refusal, self._now)
            self._give_up(entry, refusal)
        self._ledger.end_call(self._now)

    def end(self, sequence: int, how: str) -> None:
        """The call of {} {}"""
        ledger, now = self._ledger, self._now
        call = next(call for call in self._running if call.sequence == sequence)
        self._end_call(call, OK)
        for entry, half in zip(call.records, self.scheduler.grouping.halves(call), strict=True):
            if how == "returns":
                self._done.add(entry.value)
                ledger.complete(entry, tuple(self.setting.results(entry.value)), now)
            elif how == "expires" and entry.since + self.setting.timeout <= now:
                self._time_out(entry)
            else:
                self._fail(entry, OSError(entry.value), call.half, half)
        ledger.end_call(now)

    def emit(self) -> None:
        """What may be emitted leaves"""
        polled = self._ledger.poll(self._now, self._ledger.bound)
        self._unread += [each for each in polled if not each.results and self._ledger.dead_letter_of(each)]

    def receive(self) -> None:
        """The consumer receives"""
        name = name_of(self._ledger.receive())
        if name[0] != "watermark" and name[0] not in self._done:
            raise Violation(f"{named(name)} is received, and its call has not returned")
        self._outputs.receive(name)

    def receive_dead_letter(self) -> None:
        """A dead letter is received"""
        entry = self._unread.popleft()
        if entry.value in self._dead:
            raise Violation(f"the dead letter of {entry.value} is received twice")
        self._dead.append(entry.value)
        self._ledger.receive_dead_letter(entry)

    def tick(self) -> None:
        """The clock goes to the next instant"""
        self._now = self._next_instant()
        if not self.scheduler.is_plain:
            self.scheduler.advance(self._now)

    def change_gate(self, key: Any, how: str) -> None:
        """The gate of {} {}"""
        assert self._gates is not None
        gate = dict(self._gates.by_key())[key]
        if how in {"closes", "opens"}:
            gate.is_open = how == "opens"
            self._closings -= how == "closes"
        else:
            gate.refuses = how == "refuses calls"
            self._may_refuse &= not gate.refuses
        self.scheduler.change(self._gates.of_keys.get(key, self._gates.line))

    def restore(self) -> None:
        """A snapshot is taken and restored"""
        self._restores -= 1
        self._begin(self._ledger.snapshot())

    def stop(self) -> None:
        """The block ends, and the operator is restored"""
        ledger = self._ledger
        self._stops -= 1
        ledger.stop_starting()
        for call in list(self._running):
            self._end_call(call, CANCELLED)
            for entry in call.records:
                ledger.cancel(entry, self._now)
            ledger.end_call(self._now)
        self.scheduler.close(self._now)
        self._check_left("after a stop")
        self._begin(ledger.snapshot())

    # What a worker does with a call

    def _begin_call(self, call: Any) -> None:
        ledger, now = self._ledger, self._now
        if len(self._running) >= self.setting.capacity:
            raise Violation("more calls than the capacity")
        if call.attempts:
            ledger.retry(call)
            self.scheduler.running.set_retry(call, None)
        else:
            self.scheduler.running.scopes[call] = None
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
        self.scheduler.running.scopes.pop(call, None)
        if self._gates is not None:
            self._gates.end(call, outcome, self._now)
        for entry in call.records:
            seconds = self._now - self._began.pop(entry.sequence)
            ran = self._ran[entry.sequence] = self._ran.get(entry.sequence, 0.0) + seconds
            if ran > self.setting.timeout:
                raise Violation(f"{entry.value} has run for {ran:g} s of {self.setting.timeout:g} s")

    def _fail(self, entry: Any, error: Exception, part: Any, half: Any) -> None:
        if entry.attempts <= self.setting.retries:
            seconds = BACKOFF
        elif half is not None:
            seconds, part = 0.0, half
        else:
            self._ledger.fail(entry, error, self._now)
            self._give_up(entry, error)
            return
        if self.scheduler.retry(entry, seconds, self._now, error, half=part):
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

    # The invariants

    def _check(self) -> None:
        ledger = self._ledger
        if not 0 <= ledger.buffered <= self.setting.buffer:
            raise Violation(f"{ledger.buffered} records are held, and the buffer is {self.setting.buffer}")
        if ledger.counters.running != len(self._running) + len(self.scheduler.starts):
            raise Violation(f"{ledger.counters.running} slots are in use, and {len(self._running)} calls run")

    def _startable(self) -> list[int]:
        """The records that could start in a free slot."""
        calls = [*self._running, *(call for call, *_ in self.scheduler.starts)]
        ready = self.setting.ready(
            (entry.value for entry in self._ledger.order.entries() if not entry.is_done),
            {entry.value for call in calls for entry in call.records},
            self._due,
            self._now,
            lambda key: self._gates is None or self._gates.admits(key),
        )
        return [each for each in ready if each in self._due or not self.setting.must_retry_first(self._due)]

    def _check_left(self, when: str) -> None:
        counters = self._ledger.counters
        if counters.running or counters.at_gate:
            raise Violation(f"{when}, {counters.running} slots are in use, and {counters.at_gate} calls are at gates")
        if self._gates is not None and self._gates.has_calls():
            raise Violation(f"{when}, a call is still admitted")

    def check_end(self) -> None:
        """No task can do anything any more."""
        if self._gates is not None and not all(gate.is_open and not gate.refuses for _, gate in self._gates.by_key()):
            return
        ledger, failed = self._ledger, self._failed - self._done
        self._check_left("at the end")
        self._outputs.check_end(failed.__contains__)
        if self.setting.has_dead_letters and failed - set(self._dead):
            raise Violation("a record that has failed has no dead letter")
        if not ledger.is_drained() or ledger.buffered or ledger.snapshot().elements:
            raise Violation(f"at the end, {ledger.buffered} records are held, and the snapshot is {ledger.snapshot()}")

    def outcome(self) -> object:
        """What has happened, as far as it can be observed."""
        return tuple(self._outputs.got), tuple(self._dead), frozenset(self._failed)

    def fingerprint(self) -> int:
        """The hash of everything on which the future depends."""
        ledger, got = self._ledger, self._outputs.got
        found = Fingerprint()
        found.add_ledger(ledger)
        found.add(self.scheduler, ledger.counters.at_gate, list(self._running), self._unread)
        # The order of the other outputs was checked when the last one was received
        found.add(sorted(got, key=str), got[-1:], self._dead, sorted(self._done), sorted(self._failed))
        found.add({each: seconds for each, seconds in self._ran.items() if each in ledger.flow.backoffs})
        found.add(self._taken, self._now, self._began, self._due)
        found.add(self._closings, self._may_refuse, self._stops, self._restores)
        if self._gates is not None:
            gates = [(key, gate.is_open, gate.refuses, gate.calls) for key, gate in self._gates.by_key()]
            found.add(gates, sorted(self._gates.admissions))
        return hash(found)


class CoreBit(Bit):
    """A gate that opens and closes, and refuses calls, when a step says so."""

    def __init__(self, has_calls: Callable[[], bool]) -> None:
        super().__init__()
        self.is_open, self.refuses = True, False
        self._has_calls = has_calls

    def delay(self, now: float, weight: float) -> float:
        if self.refuses:
            raise RefusedError("refused")
        return 0.0 if self.is_open else inf if self._has_calls() else 1.0


class Gates:
    """Does what the operator's `Gates` does, without Trio."""

    react_to_ends = True

    def __init__(self, core: Core) -> None:
        self._core = core
        self.has_keys = core.setting.gate == "per key"
        self._common = [] if self.has_keys else [self._new()]
        self.of_keys: dict[Any, GateLine] = {}
        self.line = self._line(self._common)
        self.admissions: dict[int, Any] = {}

    def _new(self) -> CoreBit:
        return CoreBit(lambda: bool(self._core._running))

    def _line(self, gates: list[CoreBit], common: GateLine | None = None) -> GateLine:
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

    def by_key(self) -> list[tuple[Any, CoreBit]]:
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


INTERVENTIONS = frozenset({"stop", "restore", "change_gate"})  # no task does them
MOST_STATES = 100_000  # a broken core may have more and more of them


def explore_core(setting: CoreSetting) -> Exploration:
    """Take all steps in all orders, breadth first. `schedules` is the number of steps that were taken."""
    found, seen = Exploration(), {Core(setting).fingerprint()}
    todo, path = deque[tuple[Step, ...]]([()]), tuple[Step, ...]()
    try:
        while todo and len(seen) < MOST_STATES:
            start = path = todo.popleft()
            core, is_final = _replayed(setting, start), True
            for number, step in enumerate(core.steps()):
                path = (*start, step)
                core = _replayed(setting, start) if number else core
                is_final &= not core.do(step) or step[0] in INTERVENTIONS
                found.schedules += 1
                fingerprint = core.fingerprint()
                if fingerprint not in seen:
                    seen.add(fingerprint)
                    todo.append(path)
            if is_final:
                path = start
                core = _replayed(setting, start)
                core.check_end()
                found.outcomes.add(core.outcome())
    except (Violation, Exception) as violation:  # noqa: BLE001 - a broken core may raise anything
        found.violation = f"{type(violation).__name__}: {violation}"
        found.trace = [_sentence(step) for step in path]
    found.states, found.is_complete = len(seen), not todo and found.violation is None
    return found


def _replayed(setting: CoreSetting, path: tuple[Step, ...]) -> Core:
    core = Core(setting)
    for step in path:
        core.do(step)
    return core


def _fail(error: Exception, entry: object) -> None:
    raise error


def _sentence(step: Step) -> str:
    name, *arguments = step
    return str(getattr(Core, name).__doc__).format(*arguments)
