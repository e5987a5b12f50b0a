"""Blocked-loop detection: logs a warning that names the function which blocks a Trio loop, and its line."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType

import trio

from ._core.checks import check_seconds

__all__ = ["BlockedLoop"]

# A function in this many consecutive samples, a fifth of the limit apart, has blocked the loop for the whole limit.
# Samples are counted, because a suspended process makes a single sleep between two of them longer.
SAMPLES = 6

# The limit of warnings per process, one per function
MAX_REPORTED = 100

# A frame of one of these belongs to the function that calls it
COMPREHENSIONS = {"<dictcomp>", "<genexpr>", "<listcomp>", "<setcomp>"}

# Modules of these packages are not the user's
INFRASTRUCTURE = {"outcome", "trio", "trio_asyncio", "trio_asyncio_io"} | sys.stdlib_module_names

_log = logging.getLogger("trio_asyncio_io")


class BlockedLoop(trio.abc.Instrument):
    """An instrument that logs a warning when a function blocks the loop, so that no other task can run.

    The warning names the function and the line that blocked, and the cure. There is one per function. It goes to the
    logger "trio_asyncio_io".

    Each task runs at most once within a scheduler pass. So a function with the same frame in all samples of a pass has
    not awaited between them. A call into C that holds the GIL stops the sampling, too, and is not reported.

    Runs where: the hooks in the loop's thread, once per scheduler pass; the sampling in a daemon thread, which does not
    poll while the loop is idle.

    Args:
        seconds: The time for which a function may hold the loop, above 0 and finite.

    Attributes:
        logger: The logger of the warnings.
        loop_name: The name of the loop in the warnings.

    Raises:
        TypeError, ValueError: `seconds` is invalid. The message names its value.

    Example:
        trio.run(main, instruments=[BlockedLoop()])
    """

    logger = _log
    loop_name = "the loop"

    def __init__(self, seconds: float = 0.1) -> None:
        self.seconds = check_seconds("seconds", seconds, positive=True, finite=True)
        self._poll_seconds = self.seconds / (SAMPLES - 1)
        self._pass = object()  # identifies the current pass
        self._is_idle = True  # the loop waits for I/O between two passes
        self._is_over = False
        self._is_parked = False
        self._outside: set[FrameType] = set()  # the code that runs the loop, and the loop itself
        self._wakeup = threading.Event()
        self._reported: set[tuple[str, str]] = set()

    def is_user_frame(self, frame: FrameType) -> bool:
        """Whether the frame belongs to the user's code, and not to Trio, this package or the standard library."""
        return str(frame.f_globals.get("__name__")).partition(".")[0] not in INFRASTRUCTURE

    def user_frames(self, frame: FrameType | None) -> list[FrameType]:
        """The frames of the user's code that runs in the loop, outermost first."""
        frames: list[FrameType] = []
        while frame is not None and frame not in self._outside:
            if self.is_user_frame(frame) and frame.f_code.co_name not in COMPREHENSIONS:
                frames.append(frame)
            frame = frame.f_back
        return frames[::-1]

    def before_run(self) -> None:
        """Start the sampling thread."""
        self._loop = threading.get_ident()
        self._outside = set(_stack_of(sys._getframe()))  # noqa: SLF001 - as below
        threading.Thread(target=self._watch, name="trio_asyncio_io-blocked-loop", daemon=True).start()

    def after_io_wait(self, timeout: float) -> None:  # noqa: ARG002 - Trio's signature
        """Mark the start of a pass."""
        self._pass = object()
        self._is_idle = False
        if self._is_parked:
            self._wakeup.set()

    def before_io_wait(self, timeout: float) -> None:  # noqa: ARG002 - Trio's signature
        """Mark the end of a pass."""
        self._is_idle = True

    def after_run(self) -> None:
        """End the sampling thread."""
        self._is_idle = self._is_over = True
        self._outside = set()
        self._wakeup.set()

    def _watch(self) -> None:
        while not self._is_over:
            current = self._pass
            time.sleep(self._poll_seconds)
            if self._pass is not current:
                continue
            if self._is_idle:
                self._park(current)
            else:
                self._sample(current)

    def _park(self, current: object) -> None:
        """Wait for the next pass, without polling."""
        self._wakeup.clear()
        self._is_parked = True
        if self._pass is current and not self._is_over:
            self._wakeup.wait()
        self._is_parked = False

    def _sample(self, current: object) -> None:
        """Take samples until the pass ends or a function is in enough of them."""
        common: list[FrameType] = []
        samples = 0
        while True:
            frames = self._sampled_frames()
            if self._is_idle or self._pass is not current:
                return
            still = [frame for before, frame in zip(common, frames, strict=False) if before is frame]
            common, samples = (still, samples + 1) if still else (frames, 1)
            if samples == SAMPLES:
                self._report(_culprit(common))
                return
            time.sleep(self._poll_seconds)

    def _sampled_frames(self) -> list[FrameType]:
        return self.user_frames(sys._current_frames().get(self._loop))  # noqa: SLF001 - documented for debuggers

    def _report(self, frame: FrameType) -> None:
        code, line = frame.f_code, frame.f_lineno
        function = (code.co_filename, code.co_qualname)
        if function in self._reported or len(self._reported) == MAX_REPORTED:
            return
        self._reported.add(function)
        self.logger.warning(
            "%s (%s, line %s) has blocked %s for more than %g s, so all other calls had to wait. "
            "Await an async client instead, or move the blocking code into a function without `async` and run it in "
            "threads with trio_asyncio_io.adapters.in_thread",
            code.co_qualname.rpartition("<locals>.")[2],
            code.co_filename,
            line,
            self.loop_name,
            self.seconds,
        )


def _stack_of(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _culprit(frames: list[FrameType]) -> FrameType:
    """The innermost frame outside installed libraries; the outermost frame if all are inside."""
    own = [frame for frame in frames if "-packages" not in frame.f_code.co_filename]
    return own[-1] if own else frames[0]
