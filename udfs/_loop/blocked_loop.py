"""Blocked-loop detection in a worker: which functions are the user's, and how the warning names the loop."""

from __future__ import annotations

import logging
import os
from types import FrameType

from trio_asyncio_io import blocked_loop

from .._frames import is_user_frame
from .._packed_function import PackedFunction

__all__ = ["BlockedLoop", "blocked_loop_of_environment"]

SECONDS = "UDFS_BLOCKED_LOOP_SECONDS"


class BlockedLoop(blocked_loop.BlockedLoop):
    """Logs a warning to the logger "udfs" when a function blocks the worker's loop."""

    logger = logging.getLogger("udfs")
    loop_name = "the loop of this worker"

    def is_user_frame(self, frame: FrameType) -> bool:
        """Whether the frame belongs to the user's code, and not to Spark, Trio or this project."""
        return is_user_frame(frame)

    def user_frames(self, frame: FrameType | None) -> list[FrameType]:
        """The frames of the user's code. Empty while a function is unpickled, which imports modules."""
        return [] if _is_unpickling(frame) else super().user_frames(frame)


def blocked_loop_of_environment() -> BlockedLoop:
    """The detection with the limit in the environment variable `UDFS_BLOCKED_LOOP_SECONDS`, or with its default."""
    seconds = os.environ.get(SECONDS, "")
    try:
        return BlockedLoop(float(seconds)) if seconds else BlockedLoop()
    except ValueError:
        BlockedLoop.logger.warning("%s must be a number of seconds above 0, got %r. Using 0.1", SECONDS, seconds)
        return BlockedLoop()


def _is_unpickling(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code is PackedFunction.unpack.__code__:
            return True
        frame = frame.f_back
    return False
