"""Blocked-loop detection: logs a warning that names the function which blocks a Trio loop."""

from __future__ import annotations

import logging
import sys
import threading
import time
from types import FrameType

import trio

from ._operator.cpu import cpu_times, is_ready
from ._operator.tasks import LINES_OF_RUN
from ._values.checks import check_seconds

__all__ = ["BlockedLoop"]

# A function in this many consecutive samples has blocked the loop. Samples are counted, because a suspended process
# makes a single sleep between two of them longer.
SAMPLES = 6

# Frames of these packages are not the user's
INFRASTRUCTURE = {"outcome", "trio", "trio_asyncio", "trio_asyncio_io"} | sys.stdlib_module_names

# A frame of one of these belongs to the function that calls it
COMPREHENSIONS = {"<dictcomp>", "<genexpr>", "<listcomp>", "<setcomp>"}


class BlockedLoop(trio.abc.Instrument):
    """A Trio instrument that logs a warning when a function blocks the loop, so that all other calls have to wait.

    The warning names the function and the line that blocks, and how to repair it. There is one warning per function.
    asyncio has the same in its debug mode, as `loop.slow_callback_duration`.

    While a pass of Trio's scheduler takes long, a thread reads the stack of the loop. While the loop waits for I/O, the
    thread sleeps. A function with the same frame in all samples of a pass has not awaited between them. On Linux, while
    the loop's thread is ready to run, only its CPU time counts. So a thread that waits for a CPU causes no warning; on
    a busy machine, a function that computes is reported later. A call into C that holds the interpreter lock stops the
    sampling, and is not reported.

    It may watch several runs of Trio, one after another. The workers of Spark have one already.

    Args:
        seconds: How long a function has to block the loop to be reported, above 0. Real time, even under Trio's mock
            clock.
        logger: Gets the warnings. None: the logger `trio_asyncio_io`.

    Raises:
        TypeError, ValueError: `seconds` is not a finite number above 0.

    Example:
        trio.run(main, instruments=[BlockedLoop()])
    """

    def __init__(self, seconds: float = 0.1, *, logger: logging.Logger | None = None) -> None:
        self.seconds = check_seconds("seconds", seconds, positive=True, finite=True)
        self._logger = logger or logging.getLogger("trio_asyncio_io")
        self._interval = self.seconds / (SAMPLES - 1)
        self._pass = object()  # identifies the current pass
        self._is_idle = True  # the loop waits for I/O between two passes
        self._wakeup = threading.Event()  # identifies the current run; not set: its thread waits for the next pass
        self._callers: list[FrameType] = []  # of `trio.run`
        self._reported: set[tuple[str, str]] = set()

    @property
    def has_reported(self) -> bool:
        """Whether a warning has been logged."""
        return len(self._reported) > 0

    def before_run(self) -> None:
        """Start the sampling thread."""
        LINES_OF_RUN.set(self)
        self._loop = threading.get_ident()
        self._cpu = _CpuTime(threading.get_native_id())
        self._callers = self.user_frames(sys._getframe())  # noqa: SLF001 - the documented way to walk the stack
        threading.Thread(target=self._watch, args=(self._wakeup,), name="trio-blocked-loop", daemon=True).start()

    def after_io_wait(self, timeout: float) -> None:  # noqa: ARG002 - Trio's signature
        """Mark the start of a pass."""
        self._pass = object()
        self._is_idle = False
        if not self._wakeup.is_set():
            self._wakeup.set()

    def before_io_wait(self, timeout: float) -> None:  # noqa: ARG002 - Trio's signature
        """Mark the end of a pass."""
        self._is_idle = True

    def after_run(self) -> None:
        """End the sampling thread."""
        self._is_idle = True
        self._callers = []
        wakeup, self._wakeup = self._wakeup, threading.Event()
        wakeup.set()

    def user_frames(self, innermost: FrameType | None) -> list[FrameType]:
        """The frames of a stack that belong to the user's code, outermost first. For subclasses to override.

        Args:
            innermost: The innermost frame of the stack; None for an empty one.
        """
        frames: list[FrameType] = []
        # Nothing else in this loop: if the other thread goes on meanwhile, `f_back` of Python 3.11 may be no frame
        while isinstance(innermost, FrameType):
            frames.append(innermost)
            innermost = innermost.f_back
        return [each for each in frames[::-1] if self.is_user_frame(each) and each.f_code.co_name not in COMPREHENSIONS]

    def is_user_frame(self, frame: FrameType) -> bool:
        """Whether neither Trio, this package nor the standard library defines a frame's code. For subclasses."""
        return str(frame.f_globals.get("__name__")).partition(".")[0] not in INFRASTRUCTURE

    def _watch(self, wakeup: threading.Event) -> None:
        while self._wakeup is wakeup:
            current = self._pass
            time.sleep(self._interval)
            if self._pass is not current:
                continue
            if self._is_idle:
                self._park(wakeup, current)
            else:
                self._sample(current)

    def _park(self, wakeup: threading.Event, current: object) -> None:
        """Wait for the next pass, without polling."""
        wakeup.clear()
        if self._pass is current and self._wakeup is wakeup:
            wakeup.wait()

    def _sample(self, current: object) -> None:
        """Take samples until the pass ends or a function is in enough of them."""
        common: list[FrameType] = []
        blocked = 0.0
        while True:
            frames = self._frames_of_the_loop()
            if self._is_idle or self._pass is not current:
                return
            intervals = self._cpu.seconds(self._interval) / self._interval
            still = [frame for before, frame in zip(common, frames, strict=False) if before is frame]
            common, blocked = (still, blocked + intervals) if still else (frames, 0.0)
            if blocked >= SAMPLES - 1:
                self._report(_culprit(common))
                return
            time.sleep(self._interval)

    def _frames_of_the_loop(self) -> list[FrameType]:
        frames = self.user_frames(sys._current_frames().get(self._loop))  # noqa: SLF001 - documented for debuggers
        return [frame for frame in frames if frame not in self._callers]

    def _report(self, frame: FrameType) -> None:
        code, line = frame.f_code, frame.f_lineno
        function = (code.co_filename, code.co_qualname)
        if function in self._reported:
            return
        self._reported.add(function)
        self._logger.warning(
            "%s (%s, line %s) has blocked the Trio loop for more than %g s, so all other calls had to wait. "
            "Await an async client instead, or move the blocking code into a function without `async` and run it in "
            "threads with trio_asyncio_io.adapters.in_thread",
            code.co_qualname.rpartition("<locals>.")[2],
            code.co_filename,
            line,
            self.seconds,
        )


class _CpuTime:
    """The CPU time of a thread, by Linux's statistics of its scheduler.

    Args:
        thread: The native identifier of the thread, in this process.
    """

    def __init__(self, thread: int) -> None:
        self._thread = thread
        self._ran = 0.0

    def seconds(self, interval: float) -> float:
        """For how long the thread has run or waited in a system call, since the last call of this method.

        Args:
            interval: The time between two calls, in seconds. A wait counts as no more, because a suspended process
                waits for longer.
        """
        times = cpu_times(self._thread)
        if times is None:  # not Linux, or a kernel without these statistics
            return interval
        seconds, self._ran = times[0] - self._ran, times[0]
        return seconds if is_ready(self._thread) else max(seconds, interval)


def _culprit(frames: list[FrameType]) -> FrameType:
    """The innermost frame outside installed libraries; the outermost frame if all are inside."""
    own = [frame for frame in frames if "-packages" not in frame.f_code.co_filename]
    return own[-1] if own else frames[0]
