"""Stack frames: which are the user's code, and which are this project and its libraries."""

from __future__ import annotations

import sys
from types import FrameType

__all__ = ["is_user_frame", "starting_in_user_code"]

# Modules of these packages are not the user's.
INFRASTRUCTURE = {"outcome", "pyspark", "trio", "trio_asyncio", "trio_asyncio_io", "udfs"} | sys.stdlib_module_names


def is_user_frame(frame: FrameType) -> bool:
    """Whether a module outside this project, its libraries and the standard library defines the frame's code."""
    module = str(frame.f_globals.get("__name__"))
    return module.partition(".")[0] not in INFRASTRUCTURE


def starting_in_user_code(error: BaseException) -> BaseException:
    """The exception with its traceback cut to start at the first user frame; the whole traceback if it has none."""
    traceback = error.__traceback__
    while traceback is not None and not is_user_frame(traceback.tb_frame):
        traceback = traceback.tb_next
    return error if traceback is None else error.with_traceback(traceback)
