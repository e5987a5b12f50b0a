"""Helpers of the operator's tasks: wake-ups, checkpoints, clocks, the timer, and the boundary to the user's code.

Ctrl-C may interrupt the user's code, but never a step of the operator.

Trio raises `KeyboardInterrupt` in the frame that runs when the signal arrives, unless a caller has protected it
(`trio.lowlevel.enable_ki_protection`). Then the main task raises it at its next checkpoint. The innermost marked frame
decides. The operator protects its tasks and methods, so no step of the ledger is ever left half done. User code runs
below a frame that is marked with `disable_ki_protection`: one of those below, or a loop of the feeder or of a worker.
An interrupt ends it at once, even if it never reaches a checkpoint. The exceptions are a gate's methods, and its `key`,
`weight` and `classify`: they run within a step, so an interrupt waits until they return.

An interrupt never loses what user code has returned. CPython handles signals at the start of a frame, at a backward
jump and after a call of a C function. It handles none between the end of `await x` and a `return`, nor between the end
of `await x` and the start of f in `f(await x)`, nor between a C iterator's `next` and its consumer.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable
from contextvars import Context, copy_context
from gc import get_referents
from inspect import isfunction
from operator import is_
from time import thread_time
from typing import Any, Generic, TypeVar

import trio
from trio.lowlevel import ParkingLot, RunVar, Task, disable_ki_protection, enable_ki_protection

from .cpu import cpu_wait
from .function import awaitable_from

C = TypeVar("C", bound=type)
T = TypeVar("T")
R = TypeVar("R")
K = TypeVar("K")
V = TypeVar("V")


def interruptible(function: Callable[..., R]) -> Callable[..., R]:
    """The same synchronous function, open to interrupts."""

    @disable_ki_protection
    def call(*arguments: Any) -> R:
        return function(*arguments)

    return call


def uninterruptible(kind: C) -> C:
    """The same class, whose methods are closed to interrupts."""
    for method in filter(isfunction, vars(kind).values()):
        enable_ki_protection(method)
    return kind


@disable_ki_protection
async def awaited(function: Callable[..., Any], *arguments: Any) -> Any:
    """The result of an async function, which runs open to interrupts.

    Raises:
        NotAsyncError: Its call did not return an awaitable.
    """
    return await awaitable_from(function, *arguments)


class InterruptibleAsyncIterator(Generic[T]):
    """The elements of an async source, which runs open to interrupts and is never closed."""

    def __init__(self, source: AsyncIterable[T]) -> None:
        self._next = aiter(source).__anext__

    def __aiter__(self) -> AsyncIterator[T]:
        return self

    @disable_ki_protection
    async def __anext__(self) -> T:
        return await self._next()


class BlockContext:
    """The context of the task that enters the operator's block, as it is at that moment.

    A worker is one task and serves many elements. Between two of them its context is replaced by a new copy of this
    one, but only if the last invocation changed a variable: otherwise its context still equals a new copy.

    A context refers to an immutable mapping (PEP 567). Copies share it until a variable is set, so one look at it shows
    that nothing was set, however many variables there are.
    """

    def __init__(self) -> None:
        self._context = copy_context()
        self._mapping = get_referents(self._context)[-1]
        self._values = tuple(self._context.values())

    def run(self, function: Callable[[], object]) -> None:
        """Call the function in this context."""
        self._context.run(function)

    def is_changed_in(self, context: Context) -> bool:
        """Whether a copy of this context has different variables or values now."""
        if get_referents(context)[-1] is self._mapping:
            return False
        # By identity: `==` would run user code, and an equal value may be another object
        return len(context) != len(self._values) or not all(map(is_, context.values(), self._values))

    def restore(self, task: Task) -> None:
        """Give the task a new copy, which Trio uses from the task's next checkpoint on."""
        task.context = self._context.copy()


class Wakeup:
    """Tasks that wait until another task wakes them, one at a time and in the order in which they came.

    A wake-up for which nobody waits has no effect, so a task checks its condition first, and waits without a checkpoint
    in between.

    Attributes:
        is_awaited: Whether a task is waiting. Reading it is cheaper than calling `wake`.
    """

    def __init__(self) -> None:
        self._lot = ParkingLot()
        self.is_awaited = False

    def __len__(self) -> int:
        """The number of tasks that wait."""
        return len(self._lot)

    async def wait(self) -> None:
        """Wait until woken."""
        self.is_awaited = True
        try:
            await self._lot.park()
        finally:  # also if it was cancelled
            self.is_awaited = bool(self._lot)

    def wake(self) -> None:
        """Wake the task that has waited longest, if any."""
        if self.is_awaited:
            self._lot.unpark()
            self.is_awaited = bool(self._lot)

    def wake_all(self) -> None:
        """Wake all tasks that wait."""
        self._lot.unpark_all()
        self.is_awaited = False


SECONDS_PER_PASS = 0.005


class Pace:
    """Lets other tasks run during a loop that may never suspend: after a number of steps, or after 5 ms.

    If the other tasks then run for longer than 10 ms, the next steps may take half as long as they took. Otherwise a
    feeder could not keep thousands of workers busy.

    The time is Trio's. A virtual clock may stand still, and then only the steps count.

    Args:
        steps: Upper limit of steps between two checkpoints, at least 1.

    Attributes:
        steps_left, due: The number of steps, and the time, until the next checkpoint.
    """

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._restart()

    def is_due(self, now: float) -> bool:
        """Count a step. Returns whether the task must call `checkpoint` before the next one."""
        self.steps_left -= 1
        return self.steps_left <= 0 or now >= self.due

    async def checkpoint(self) -> None:
        """Let other tasks run, and count from here."""
        began = trio.current_time()
        await trio.lowlevel.checkpoint()
        self._restart(trio.current_time() - began)

    async def step(self) -> None:
        """Count a step, and run a checkpoint if one is due."""
        if self.is_due(trio.current_time()):
            await self.checkpoint()

    def _restart(self, seconds_of_others: float = 0.0) -> None:
        self.steps_left = self._steps
        self.due = trio.current_time() + max(SECONDS_PER_PASS, seconds_of_others / 2)


def read_clocks() -> tuple[float, float]:
    """The time on Trio's clock, and the time for which this thread used the CPU or waited for it, in seconds."""
    return trio.current_time(), thread_time() + cpu_wait()


def dict_of_run(variable: RunVar[dict[K, V]]) -> dict[K, V]:
    """The dict of the present Trio run. The first use of the run creates it."""
    try:
        return variable.get()
    except LookupError:
        variable.set({})
        return variable.get()


# What logs the lines that block the present Trio run: a `BlockedLoop`, or None
LINES_OF_RUN: RunVar[Any] = RunVar("trio_asyncio_io lines that block", default=None)


class Timer:
    """Calls a function at instants that may change.

    Args:
        next_instant: Returns the first instant, or `math.inf`. It may be too early.
        on_instant: Called at it, with the time.

    Attributes:
        at: The instant at which the timer wakes next. Compare with it before a call of `wake_by`, which costs more.
    """

    def __init__(self, next_instant: Callable[[], float], on_instant: Callable[[float], None]) -> None:
        self._next_instant = next_instant
        self._on_instant = on_instant
        self._sleep = trio.CancelScope()
        self.at = next_instant()

    def wake_by(self, at: float) -> None:
        """Wake at this instant, unless the timer wakes earlier."""
        if at < self.at:
            self.at = self._sleep.deadline = at

    @enable_ki_protection
    async def run(self) -> None:
        """Run until cancelled."""
        while True:
            self.at = self._next_instant()
            self._sleep = trio.CancelScope(deadline=self.at)
            with self._sleep:
                await trio.sleep_forever()
            self._on_instant(trio.current_time())
