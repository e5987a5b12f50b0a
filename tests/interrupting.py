"""Ctrl-C at a given point: SIGINT before the n-th line of the package, or inside the user's code."""

from __future__ import annotations

import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import trio_asyncio_io

PACKAGE = str(Path(trio_asyncio_io.__file__).parent)


@contextmanager
def default_sigint() -> Iterator[None]:
    """Install Python's own handler. Trio handles SIGINT only in place of that one."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class LineCounter:
    """Counts the executed lines of the package, and raises SIGINT before one of them.

    Args:
        interrupt_at: The number of that line, from 1. 0: none.

    Attributes:
        count: The number of lines so far.
        counts: By file and line of the source, how often it was executed.
    """

    def __init__(self, interrupt_at: int = 0) -> None:
        self.count = 0
        self.counts: Counter[tuple[str, int]] = Counter()
        self._interrupt_at = interrupt_at

    @contextmanager
    def traced(self) -> Iterator[None]:
        before = sys.gettrace()  # that of a coverage measurement
        sys.settrace(self._trace)
        try:
            yield
        finally:
            sys.settrace(before)

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
        return self._trace_lines if frame.f_code.co_filename.startswith(PACKAGE) else None

    def _trace_lines(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any]:
        if event == "line":
            self.count += 1
            self.counts[frame.f_code.co_filename, frame.f_lineno] += 1
            if self.count == self._interrupt_at:
                signal.raise_signal(signal.SIGINT)
        return self._trace_lines


class LineOfSource(LineCounter):
    """Raises SIGINT before a line of the source.

    Args:
        line: The file and the number of the line.
        time: At which of its executions, from 1.
    """

    def __init__(self, line: tuple[str, int], time: int) -> None:
        super().__init__()
        self._file, self._number = line
        self._time = time

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
        code = frame.f_code
        is_possible = code.co_filename == self._file and code.co_firstlineno <= self._number
        return self._trace_lines if is_possible and self.count < self._time else None

    def _trace_lines(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any]:
        if event == "line" and frame.f_lineno == self._number:
            self.count += 1
            if self.count == self._time:
                signal.raise_signal(signal.SIGINT)
        return self._trace_lines


class Interrupter:
    """Raises SIGINT once, inside the user's code.

    Attributes:
        was_interrupted: Whether KeyboardInterrupt was raised at that point.
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
