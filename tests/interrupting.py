"""Ctrl-C at a chosen point: before the n-th line of the package's code, or within user code."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import trio_asyncio_io

PACKAGE = str(Path(trio_asyncio_io.__file__).parent)


@contextmanager
def default_sigint() -> Iterator[None]:
    """Install Python's handler of SIGINT, because Trio replaces no other."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class Lines:
    """Counts the executed lines of the package, and raises SIGINT before one of them.

    Args:
        interrupt_at: The number of that line, from 1. 0: none.
    """

    def __init__(self, interrupt_at: int = 0) -> None:
        self.count = 0
        self._interrupt_at = interrupt_at

    @contextmanager
    def traced(self) -> Iterator[None]:
        sys.settrace(self._trace)
        try:
            yield
        finally:
            sys.settrace(None)

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
        return self._trace_lines if frame.f_code.co_filename.startswith(PACKAGE) else None

    def _trace_lines(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any]:
        if event == "line":
            self.count += 1
            if self.count == self._interrupt_at:
                signal.raise_signal(signal.SIGINT)
        return self._trace_lines


class Interruption:
    """Raises SIGINT within user code, once.

    Attributes:
        was_interrupted: Whether the signal raised `KeyboardInterrupt` there.
    """

    def __init__(self) -> None:
        self.was_interrupted = False

    def interrupt(self) -> None:
        if self.was_interrupted:
            return
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            self.was_interrupted = True
            raise
