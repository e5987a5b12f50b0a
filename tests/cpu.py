"""The CPU time of a test run, with that of every process below it: JVMs, Spark's workers, servers, killed jobs.

`os.times` counts only children that were waited for, which a JVM and its workers never are. So a thread reads `/proc`
twice a second. What a process uses after its last reading is missing.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path

SECONDS_BETWEEN_READINGS = 0.5
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


class CpuMeter:
    """Adds up the CPU seconds of this process and of all processes below it, by the name of their programs."""

    def __init__(self) -> None:
        self._seconds: dict[tuple[int, int], tuple[str, float]] = {}  # by process and its start
        self._has_ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="CPU meter", daemon=True)
        self._thread.start()

    def end(self) -> dict[str, float]:
        """Stop reading. Returns the seconds by program."""
        self._has_ended.set()
        self._thread.join()
        self._read()
        total: dict[str, float] = {}
        for program, seconds in self._seconds.values():
            total[program] = total.get(program, 0.0) + seconds
        return total

    def _run(self) -> None:
        while not self._has_ended.wait(SECONDS_BETWEEN_READINGS):
            self._read()

    def _read(self) -> None:
        found = {}
        for path in Path("/proc").glob("[0-9]*/stat"):
            try:
                text = path.read_text()
            except OSError:  # it has ended
                continue
            program, fields = text[text.index("(") + 1 : text.rindex(")")], text[text.rindex(")") + 2 :].split()
            found[int(path.parent.name)] = program, fields
        for number, (program, fields) in found.items():
            key = number, int(fields[19])
            if key in self._seconds or self._is_below(number, found):
                self._seconds[key] = program, (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND

    def _is_below(self, number: int, found: dict[int, tuple[str, list[str]]]) -> bool:
        while number in found:
            if number == os.getpid():
                return True
            number = int(found[number][1][1])
        return False
