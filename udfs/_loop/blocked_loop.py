"""Blocked-loop detection: logs a warning that names the function which blocks the worker's loop."""

from __future__ import annotations

import logging
import sys
import threading
import time
from types import FrameType

import trio

from .._frames import is_user_frame
from .._packed_function import PackedFunction

__all__ = ["BlockedLoop"]

# A function in this many consecutive samples has blocked the loop for at least 0.1 s. Samples are counted, because a
# suspended process makes a single sleep between two of them longer.
SAMPLES = 6
POLL_SECONDS = 0.02

# The limit of warnings per process, one per function
MAX_REPORTED = 100

# A frame of one of these belongs to the function that calls it
COMPREHENSIONS = {"<dictcomp>", "<genexpr>", "<listcomp>", "<setcomp>"}

logger = logging.getLogger("udfs")


class BlockedLoop(trio.abc.Instrument):
    """Logs a warning when a function blocks a Trio loop for more than 0.1 s.

    Each task runs at most once within a scheduler pass. So a function with the same frame in all samples of a pass has
    not awaited between them. A call into C that holds the GIL stops the sampling, too, and is not reported.

    Runs where: the hooks in the loop's thread, once per scheduler pass; the sampling in a daemon thread, which does not
    poll while the loop is idle.
    """

    def __init__(self) -> None:
        self._pass = object()  # identifies the current pass
        self._is_idle = True  # the loop waits for I/O between two passes
        self._is_over = False
        self._is_parked = False
        self._wakeup = threading.Event()
        self._reported: set[tuple[str, str]] = set()

    def before_run(self) -> None:
        """Start the sampling thread."""
        self._loop = threading.get_ident()
        threading.Thread(target=self._watch, name="udfs-blocked-loop", daemon=True).start()

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
        self._wakeup.set()

    def _watch(self) -> None:
        while not self._is_over:
            current = self._pass
            time.sleep(POLL_SECONDS)
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
            frames = self._user_frames()
            if self._is_idle or self._pass is not current:
                return
            still = [frame for before, frame in zip(common, frames, strict=False) if before is frame]
            common, samples = (still, samples + 1) if still else (frames, 1)
            if samples == SAMPLES:
                self._report(_culprit(common))
                return
            time.sleep(POLL_SECONDS)

    def _user_frames(self) -> list[FrameType]:
        return _user_frames(sys._current_frames().get(self._loop))  # noqa: SLF001 - documented for debuggers

    def _report(self, frame: FrameType) -> None:
        code, line = frame.f_code, frame.f_lineno
        function = (code.co_filename, code.co_qualname)
        if function in self._reported or len(self._reported) == MAX_REPORTED:
            return
        self._reported.add(function)
        logger.warning(
            "%s (%s, line %s) has blocked the loop of this worker for more than 0.1 s, so all other calls had to wait. "
            "Await an async client instead, or move the blocking code into a function without `async` and run it in "
            "threads with trio_asyncio_io.adapters.in_thread",
            code.co_qualname.rpartition("<locals>.")[2],
            code.co_filename,
            line,
        )


def _user_frames(frame: FrameType | None) -> list[FrameType]:
    """The frames of the user's code, outermost first. Empty while a function is unpickled, which imports modules."""
    frames: list[FrameType] = []
    while frame is not None:
        if frame.f_code is PackedFunction.unpack.__code__:
            return []
        if is_user_frame(frame) and frame.f_code.co_name not in COMPREHENSIONS:
            frames.append(frame)
        frame = frame.f_back
    return frames[::-1]


def _culprit(frames: list[FrameType]) -> FrameType:
    """The innermost frame outside installed libraries; the outermost frame if all are inside."""
    own = [frame for frame in frames if "-packages" not in frame.f_code.co_filename]
    return own[-1] if own else frames[0]
