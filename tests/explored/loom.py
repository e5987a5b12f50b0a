"""A loom for Trio: a model checker that runs a program in every interleaving of its tasks and of its environment.

A test runs one interleaving, and a random test a few. The one with the defect is rare: a result comes at the instant of
its deadline, while another task is one step from its checkpoint. As CHESS, Loom and Shuttle do for threads, `explore`
runs all of them, for a small program:

* **Nondeterminism is a choice.** In each pass, Trio runs the tasks that are ready in an order that it does not promise:
  `Loom.shuffle` chooses it. Between two passes, the environment acts: a `World` lists the events that are possible (a
  call returns, the clock goes to the next deadline, Ctrl-C), and `Loom` chooses one. Nothing else is free: the clock is
  ours, and no task waits for a file or a socket.
* **A schedule is a list of choices.** A run replays a prefix of a schedule, and takes the first option from there on.
  The next run changes the last choice that has another option: a depth-first search by re-execution. No state is
  copied, so the program and its tasks are the real ones.
* **Equal states have equal futures.** Before each choice, a `Fingerprint` of the world and of all tasks is taken. If an
  earlier run had the same one, this run makes no further choices. Its end is still checked.
* **Delay bounding.** The first option is first come, first served. With `bound`, a run deviates from it at most that
  often (Emmi, Qadeer and Rakamarić, 2011). Most defects need one or two deviations.

A violation comes with the shortest trace that a second search finds.

Two private names of Trio are replaced while a program runs, and a third one is read: see `PRIVATE`.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple

import trio
from trio._core import _run

from tests.explored.fingerprint import Fingerprint
from tests.interrupting import default_sigint

# Trio's random numbers decide the order of each batch; the flag makes them shuffle a sorted list, as Hypothesis needs
# it; and what a task that is ready will be sent is part of the state
PRIVATE = ((_run, "_r"), (_run, "_ALLOW_DETERMINISTIC_SCHEDULING"), (trio.lowlevel.Task, "_next_send"))

NUMBERS_OF = (3, 11)  # the Python of the tables
PASSES = 1_000  # of one run: more are a livelock
RUNS_PER_COLLECTION = 100
SHORTENING = 4_000  # runs that look for a shorter trace
UNBOUNDED = 1_000

_unfinished: list[Any] = []  # the tasks of runs that were stopped by a violation: they cannot be unwound


class Violation(BaseException):
    """The program did something that it must not do. No program takes this for an error of its user."""


class Event(NamedTuple):
    """Something that may happen between two passes.

    Args:
        rank: At one instant, events happen in the order of their ranks. `LAST`: none follows at that instant.
        text: A sentence for the trace.
        act: Makes it happen.
    """

    rank: int
    text: str
    act: Callable[[], object]


LAST = 1_000


class World:
    """A program and its environment, for one run.

    Attributes:
        is_eager: Whether events may happen before each pass, or only at quiescence: when no task is ready.
        is_crowded: Whether several events may happen at one instant.
        subjects: What must be gone from memory after the run.
    """

    is_eager = is_crowded = False

    def __init__(self, loom: Loom) -> None:
        self.loom = loom
        self.subjects: list[Any] = []

    async def main(self) -> None:
        """The program."""
        raise NotImplementedError

    def events(self) -> list[Event]:
        """The events that are possible now."""
        return []

    def check(self, *, is_quiescent: bool) -> None:
        """Raise a `Violation` if an invariant is broken."""

    def fingerprint(self, fingerprint: Fingerprint) -> None:
        """Add everything on which the future depends, apart from the tasks."""

    def outcome(self) -> object:
        """The observable behaviour of the run."""


class Schedule:
    """The choices of one run.

    Args:
        prefix: Those to replay.

    Attributes:
        is_open: Whether other options remain to be tried from here on.
    """

    def __init__(self, prefix: list[int]) -> None:
        self.is_open = True
        self._prefix = prefix
        self._made: list[tuple[int, int]] = []  # (the option that was chosen, the number of options)

    def choose(self, options: int) -> int:
        """Choose one of this number of options."""
        if options == 1:
            return 0
        position = len(self._made)
        chosen = self._prefix[position] if position < len(self._prefix) else 0
        self._made.append((chosen, options if self.is_open else 1))
        return chosen

    @property
    def is_new(self) -> bool:
        """Whether the prefix has been replayed."""
        return len(self._made) >= len(self._prefix)

    def next_prefix(self) -> list[int] | None:
        """The prefix of the next run, or None after the last one."""
        made = self._made
        while made and made[-1][0] + 1 >= made[-1][1]:
            made.pop()
        return [chosen for chosen, _ in made[:-1]] + [made[-1][0] + 1] if made else None


class Loom(trio.abc.Clock, trio.abc.Instrument):
    """The scheduler of one run: Trio's clock, its instrument, and the order of its batches.

    Attributes:
        now: The time.
        schedule: The choices.
        trace: What has happened, in sentences. Those that start with an arrow are consequences.
        steps: The number of the other sentences.
        was_interrupted: Whether `interrupt` was called.
    """

    def __init__(self, search: Search, prefix: list[int]) -> None:
        self.now = 0.0
        self.schedule = Schedule(prefix)
        self.trace: list[str] = []
        self.steps = 0
        self.was_interrupted = False
        self._search = search
        self._deviations = 0
        self._passes = 0
        self._numbers: dict[trio.lowlevel.Task, int] = {}  # of the program's tasks, not of Trio's own
        self._ready: set[trio.lowlevel.Task] = set()
        self._count = count()
        self._is_running = False
        self._violation: BaseException | None = None

    def run(self, world: World) -> BaseException | None:
        """Run the program. Returns what was wrong, or None."""
        self._world = world
        with _replaced(self):
            try:
                trio.run(self._main, clock=self, instruments=[self])
            except trio.TrioInternalError as error:
                _unfinished.append((error, self._numbers))
                return self._violation or error
            except KeyboardInterrupt as error:  # after the last checkpoint
                return None if self.was_interrupted else error
            except BaseException as error:  # noqa: BLE001 - the program may raise anything
                return _single(error)
        return self._violation

    def choose(self, *texts: str) -> int:
        """A choice of the world. Returns the position of the text."""
        chosen = self.schedule.choose(len(texts))
        self._note(texts[chosen])
        return chosen

    def say(self, text: str) -> None:
        """Add a consequence to the trace."""
        self.trace.append(f"  -> {text}")

    def interrupt(self) -> None:
        """Ctrl-C, while Trio waits."""
        self.was_interrupted = True
        signal.raise_signal(signal.SIGINT)

    def next_deadline(self) -> float:
        """The first deadline of a cancel scope, or `math.inf`."""
        return self.now + trio.lowlevel.current_statistics().seconds_to_next_deadline

    async def _main(self) -> None:
        self.task_spawned(trio.lowlevel.current_task())
        self._is_running = True
        try:
            await self._world.main()
        finally:
            self._is_running = False

    def _note(self, text: str) -> None:
        self.trace.append(text)
        self.steps += 1
        if self.steps >= self._search.most_steps:
            self.schedule.is_open = False

    # The environment acts between two passes

    def before_io_wait(self, timeout: float) -> None:
        if self._is_running:
            try:
                self._act()
            except BaseException as error:  # noqa: BLE001 - Trio would log it. `shuffle` raises it in a moment
                self._violation = error

    def _act(self) -> None:
        world, lowest = self._world, 0
        self._passes += 1
        if self._passes > PASSES:
            raise Violation("the tasks run on and on: a livelock")
        while True:
            is_quiescent = not self._ready
            world.check(is_quiescent=is_quiescent)
            may_act = is_quiescent or world.is_eager or (world.is_crowded and lowest)
            events = [event for event in world.events() if event.rank >= lowest] if may_act else []
            if is_quiescent and not events:
                raise Violation("all tasks wait, and nothing can happen: a deadlock")
            self._look_up(lowest)
            chosen = self.schedule.choose(len(events) + (not is_quiescent)) - (not is_quiescent)
            if chosen < 0:
                return
            event = events[chosen]
            self._note(event.text)
            event.act()
            lowest = event.rank
            if lowest == LAST:
                return

    def _look_up(self, lowest: int) -> None:
        """Go on without further choices if an earlier run was in this state, with as many steps left."""
        search, schedule = self._search, self.schedule
        if search.is_pruned and schedule.is_open and schedule.is_new:
            state = self._fingerprint(lowest)
            if search.seen.get(state, UNBOUNDED) <= self.steps:
                schedule.is_open = False
            else:
                search.seen[state] = self.steps if search.most_steps < UNBOUNDED else 0

    def _fingerprint(self, lowest: int) -> int:
        fingerprint = Fingerprint(self._search.ignored, self._numbers)
        fingerprint.add(lowest, self.now, self._deviations if self._search.bound < UNBOUNDED else 0)
        self._world.fingerprint(fingerprint)
        for task in self._numbers:
            fingerprint.add_task(task, is_ready=task in self._ready)
        return hash(fingerprint)

    # The order of each batch of tasks

    def shuffle(self, batch: list[trio.lowlevel.Task]) -> None:
        """Trio takes the tasks of the batch from its end. They come in the order in which they were created."""
        if self._violation is not None:
            raise self._violation
        ours = [task for task in batch if task in self._numbers]
        others = [task for task in batch if task not in self._numbers]
        order = []
        while len(ours) > 1 and self._deviations < self._search.bound:
            chosen = self.schedule.choose(len(ours))
            if chosen:
                self._deviations += 1
                self._note(f"{_name(ours[chosen])} runs before {' and '.join(map(_name, ours[:chosen]))}")
            order.append(ours.pop(chosen))
        batch[:] = [*reversed([*order, *ours]), *others]

    # The clock and the instrument

    def start_clock(self) -> None:
        pass

    def current_time(self) -> float:
        return self.now

    def deadline_to_sleep_time(self, deadline: float) -> float:
        return 0.0  # Trio never waits: `before_io_wait` lets something happen, or finds a deadlock

    def task_spawned(self, task: trio.lowlevel.Task) -> None:
        if self._is_running or not self._numbers:
            self._numbers[task] = next(self._count)

    def task_exited(self, task: trio.lowlevel.Task) -> None:
        self._numbers.pop(task, None)

    def task_scheduled(self, task: trio.lowlevel.Task) -> None:
        self._ready.add(task)

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self._ready.discard(task)


@dataclass
class Search:
    """A search over the choices of a program.

    Args:
        bound: The most deviations from first come, first served, in one run.
        is_pruned: Whether a run ends its choices in a state that was seen before.
        ignored: What is left out of fingerprints, see `Fingerprint`.
        most_steps: Of the traces that are looked for.

    Attributes:
        seen: By state, the fewest steps to it.
    """

    bound: int = UNBOUNDED
    is_pruned: bool = True
    ignored: frozenset[str] = frozenset()
    most_steps: int = UNBOUNDED
    seen: dict[int, int] = field(default_factory=dict)

    def run(self, make: Callable[[Loom], World], most_runs: int) -> Exploration:
        """Run the program once for each list of choices, until there is a violation."""
        prefix: list[int] | None = []
        found = Exploration()
        subjects: list[weakref.ref[Any]] = []
        while prefix is not None and found.violation is None and found.schedules < most_runs:
            loom = Loom(self, prefix)
            world = make(loom)
            violation = loom.run(world)
            found.schedules += 1
            found.outcomes.add(world.outcome())
            subjects += map(weakref.ref, world.subjects)
            if violation is not None and loom.steps <= self.most_steps:
                found.violation, found.trace = f"{type(violation).__name__}: {violation}", loom.trace
            prefix = loom.schedule.next_prefix()
            violation, world, loom = None, None, None  # type: ignore[assignment]
            if found.violation is None and (prefix is None or found.schedules % RUNS_PER_COLLECTION == 0):
                found.violation, subjects = _kept(subjects), []
        found.states, found.is_complete = len(self.seen), prefix is None and found.violation is None
        return found


@dataclass
class Exploration:
    """What a search has found.

    Attributes:
        schedules: The number of runs.
        states: The number of different states, if states are compared.
        is_complete: Whether there is no other list of choices.
        violation: What was wrong, or None.
        trace: How it came to that.
        outcomes: The different behaviours of the runs.
    """

    schedules: int = 0
    states: int = 0
    is_complete: bool = False
    violation: str | None = None
    trace: list[str] = field(default_factory=list)
    outcomes: set[object] = field(default_factory=set)

    def check(self, name: object, schedules: int, states: int) -> None:
        """Raise an `AssertionError` with the trace of a violation, or if the numbers are others than those.

        With EXPLORED_NUMBERS=any, and with another Python than `NUMBERS_OF`, the numbers are not compared: where a task
        waits is a part of the state, and each Python compiles its code in its own way.
        """
        assert self.violation is None, f"{name}: {self}"
        assert self.is_complete, f"{name}: not complete after {self}"
        if os.environ.get("EXPLORED_NUMBERS") == "any" or sys.version_info[:2] != NUMBERS_OF:
            return
        assert (self.schedules, self.states) == (schedules, states), (
            f"{name}: {schedules} schedules and {states} states have become {self}. So the behaviour has changed: if "
            "that is intended, write the new numbers into the table"
        )

    def __str__(self) -> str:
        if self.violation is None:
            return f"{self.schedules} schedules, {self.states} states"
        numbers = count(1)
        lines = [line if line.startswith(" ") else f"{next(numbers):4}. {line}" for line in self.trace]
        return "\n".join([f"{self.violation} (after {self.schedules} schedules)", *lines])

    @property
    def steps(self) -> int:
        """The number of steps of the trace, without their consequences."""
        return sum(not line.startswith(" ") for line in self.trace)


def explore(
    make: Callable[[Loom], World],
    *,
    bound: int = UNBOUNDED,
    is_pruned: bool = True,
    ignored: frozenset[str] = frozenset(),
    most_runs: int = 100_000,
) -> Exploration:
    """Run a program with all choices, see `Search`. A violation comes with the shortest trace that was found."""
    with _memory_at_rest(), default_sigint():
        found = Search(bound, is_pruned, ignored).run(make, most_runs)
        left = SHORTENING
        while found.violation is not None and found.steps > 1 and left > 0:
            shorter = Search(bound, is_pruned, ignored, most_steps=found.steps - 1).run(make, left)
            left -= shorter.schedules
            if shorter.violation is None or not shorter.trace:
                break
            shorter.schedules = found.schedules
            found = shorter
    return found


@contextmanager
def _memory_at_rest() -> Iterator[None]:
    """Collect no garbage but between runs, and none that was there before."""
    _collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@contextmanager
def _replaced(loom: Loom) -> Iterator[None]:
    before = [getattr(owner, name) for owner, name in PRIVATE[:2]]
    for (owner, name), value in zip(PRIVATE, (loom, True), strict=False):
        setattr(owner, name, value)
    try:
        yield
    finally:
        for (owner, name), value in zip(PRIVATE, before, strict=False):
            setattr(owner, name, value)


def _kept(subjects: list[weakref.ref[Any]]) -> str | None:
    _collect()
    number = sum(subject() is not None for subject in subjects)
    return f"{number} of {len(subjects)} operators are still in memory after their runs" if number else None


def _collect() -> None:
    for _ in range(6):  # what a weak key holds goes in a later pass
        if not gc.collect():
            return


def _single(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error.with_traceback(None)


def _name(task: trio.lowlevel.Task) -> str:
    name = task.name.removeprefix("trio_asyncio_io ")
    return "the main task" if name.endswith("_main") else f"the {name.rpartition('.')[2].replace('_', ' ')}"
