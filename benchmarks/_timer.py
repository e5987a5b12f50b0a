"""A timer that simulates the latency of a service on Trio, at the cost of `asyncio.sleep` on asyncio.

`trio.sleep` opens a cancel scope, cancels it and catches the cancellation, which takes about 50 μs; `asyncio.sleep`
takes 11 μs. At 30,000 calls per second that alone would exceed one processor, and the simulation is not the subject.
"""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count

import trio
from trio.lowlevel import Abort, RaiseCancelT, RunVar, Task


class _Alarm:
    """A task to wake, unless it is cancelled first."""

    __slots__ = ("task",)

    def __init__(self) -> None:
        self.task: Task | None = trio.lowlevel.current_task()

    def drop(self, _: RaiseCancelT) -> Abort:
        self.task = None
        return Abort.SUCCEEDED


class _Timer:
    """Wakes tasks in the order of their times, in one task with one cancel scope per instant."""

    def __init__(self) -> None:
        self._alarms: list[tuple[float, int, _Alarm]] = []
        self._numbers = count()
        self._until_first = trio.CancelScope()
        self._has_first = trio.lowlevel.ParkingLot()

    async def sleep_until(self, when: float) -> None:
        alarm = _Alarm()
        heappush(self._alarms, (when, next(self._numbers), alarm))
        if self._alarms[0][2] is alarm:
            self._until_first.deadline = when
            self._has_first.unpark()
        await trio.lowlevel.wait_task_rescheduled(alarm.drop)

    async def run(self) -> None:
        while True:
            if not self._alarms:
                await self._has_first.park()
            with trio.CancelScope(deadline=self._alarms[0][0]) as self._until_first:
                await trio.sleep_forever()
            self._wake(trio.current_time())

    def _wake(self, now: float) -> None:
        while self._alarms and self._alarms[0][0] <= now:
            alarm = heappop(self._alarms)[2]
            if alarm.task is not None:
                trio.lowlevel.reschedule(alarm.task)


_TIMER: RunVar[_Timer] = RunVar("timer")


async def sleep(seconds: float) -> None:
    """Sleep like `trio.sleep`, also on a virtual clock."""
    try:
        timer = _TIMER.get()
    except LookupError:
        timer = _Timer()
        _TIMER.set(timer)
        trio.lowlevel.spawn_system_task(timer.run, name="timer")
    await timer.sleep_until(trio.current_time() + seconds)
