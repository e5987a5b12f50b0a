"""Blocked-loop detection in a worker: which frames are the user's there, and the setting of its environment."""

from __future__ import annotations

import logging
import os
from types import FrameType

from trio_asyncio_io.blocking import BlockedLoop

from .._frames import is_user_frame
from .._sent.packed_function import PackedFunction

__all__ = ["SECONDS", "BlockedWorker"]

# The environment variable with the seconds after which a function is reported
SECONDS = "UDFS_BLOCKED_LOOP_SECONDS"

logger = logging.getLogger("udfs")


class BlockedWorker(BlockedLoop):
    """Logs a warning when a function blocks the loop of this worker.

    Runs where: the hooks in the loop's thread, once per scheduler pass; the sampling in a daemon thread, which does not
    poll while the loop is idle.
    """

    def __init__(self) -> None:
        super().__init__(_seconds(), logger=logger)

    def user_frames(self, innermost: FrameType | None) -> list[FrameType]:
        """The user's frames, outermost first. Empty while a function is unpickled, which imports modules."""
        return [] if _is_unpickling(innermost) else super().user_frames(innermost)

    def is_user_frame(self, frame: FrameType) -> bool:
        """Whether the code belongs neither to this project nor to the libraries that it runs on."""
        return is_user_frame(frame)


def _seconds() -> float:
    """The value of the environment variable; 0.1 without one, or with a value that is not seconds above 0."""
    text = os.environ.get(SECONDS, "0.1")
    try:
        BlockedLoop(float(text))
    except ValueError:
        logger.warning("%s must be seconds above 0, got %r: 0.1 is used", SECONDS, text)
        return 0.1
    return float(text)


def _is_unpickling(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code is PackedFunction.unpack.__code__:
            return True
        frame = frame.f_back
    return False
