"""Room: how many rows the operator of a task may have, so that `buffer` bounds results as well as calls.

A row takes room from the instant at which the operator gets it until Spark's thread has written its result. The source
of the operator is the only place where rows can wait: a call that waited for memory would use its timeout, and results
that were not received would not be in a memo yet.

The limit is `buffer` rows and one chunk, which may be on its way to Spark; and about `buffer_bytes` of results, by the
mean size of those that have been measured. There is always room for as many rows as can run, because neither limit may
lower the capacity. If a gate finds the capacity, there is always room only for the calls with which the gate starts:
the upper limit of such a capacity is hundreds of calls, whose results could need gigabytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Final

import trio

from trio_asyncio_io import Options
from trio_asyncio_io.gates import Auto, PerKey

from .._sent.settings import Settings

# Upper limits of a chunk of results
CHUNK_ROWS: Final = 512
CHUNK_BYTES: Final = 8 * 1024 * 1024
# The first results are all measured, later ones one in eight. The mean size is over about the last 32 measured
SAMPLE: Final = 32
EVERY: Final = 8
# Results after which their mean size counts. Until then few rows get room
FIRST_RESULTS: Final = 16


class Room:
    """Counts the rows of a task between the operator's source and Spark's thread. Only the loop's thread changes it.

    Args:
        settings: The settings of the UDF.

    Attributes:
        taken: The rows that have taken room so far. The source adds to it.
        granted: How many may have taken room by now. Beyond, the source waits.
        written: How many of them have left it.
        ended: The rows with a result so far, or without a call.
        mean_nbytes: The mean size of a result, in bytes; at least 1.
        calls: The calls that may always run: the capacity or, if a gate finds it, the calls with which the gate starts.
    """

    def __init__(self, settings: Settings) -> None:
        options = settings.options
        self.taken = self.granted = self.written = self.ended = 0
        self.mean_nbytes = 1.0
        self._nbytes = settings.buffer_bytes
        self._rows = options.bound + min(CHUNK_ROWS, options.bound)
        group = options.group or 1
        self.calls, first = _calls_at_first(options)
        self._slots, self._least = options.capacity * group, self.calls * group
        # In keyed mode the first rows may have one key, so that only one of them can run
        self._first = self._rows if options.mode == "keyed" else min(self._rows, first * group)
        self._change = trio.Event()

    async def wait(self) -> None:
        """Wait until there is room for another row."""
        while not self._has_room():
            self._change = trio.Event()
            await self._change.wait()

    def leave(self, rows: int) -> None:
        """The results of this number of rows have been written."""
        self.written += rows
        self._change.set()

    def end(self, result: Any) -> None:
        """A row has ended with this result; None without one."""
        self.ended += 1
        if self.ended < SAMPLE or not self.ended % EVERY:
            self.mean_nbytes += (1 + nbytes_of(result) - self.mean_nbytes) / min(self.ended, SAMPLE)
            self._change.set()

    def is_exceeded_by(self, rows: int) -> bool:
        """Whether the results of `rows` rows are too large to be held at once. Any thread may call this.

        False until their size is known: the row with the first result may not have been read yet.
        """
        return self._is_measured and rows > self.size

    @property
    def size(self) -> int:
        """How many rows have room at once, as far as is known now."""
        rows = min(self._rows, int(self._nbytes / self.mean_nbytes)) if self._is_measured else self._first
        return max(rows, self._least)

    @property
    def _is_measured(self) -> bool:
        return self.ended >= min(FIRST_RESULTS, self._slots)

    @property
    def chunk(self) -> int:
        """How many rows a chunk of results waits for: at most half of those that have room and need not run."""
        return max(1, min(CHUNK_ROWS, int(CHUNK_BYTES / self.mean_nbytes), (self.size - self._least) // 2))

    def _has_room(self) -> bool:
        """Whether another row may take room. If so, a few may do so, but no more: sizes may change."""
        self.granted = min(self.written + self.size, self.taken + self._least)
        return self.taken < self.granted


def _calls_at_first(options: Options) -> tuple[int, int]:
    """The calls for which there is always room, and those that have room until the size of results is known.

    If a gate finds the capacity, these are the calls with which it starts, and those that it admits before the first
    answer.
    """
    given = [gate for each in options.gates for gate in (each.gates if isinstance(each, PerKey) else (each,))]
    autos = [gate for gate in given if isinstance(gate, Auto)]
    least = min([options.capacity, *(gate.first for gate in autos)])
    return least, max(2 * least, min([2 * options.capacity, *(gate.unanswered for gate in autos)]))


def nbytes_of(value: Any) -> int:
    """About the size of a result, in bytes. Only the first item of a list is measured."""
    if isinstance(value, str | bytes | bytearray):
        return len(value)
    if isinstance(value, Mapping):
        return sum(map(nbytes_of, value.values()))
    if isinstance(value, list):
        return len(value) * nbytes_of(value[0]) if value else 0
    if isinstance(value, tuple):  # or a named tuple, such as the response of an HTTP column
        return sum(map(nbytes_of, value))
    if is_dataclass(value):
        return sum(nbytes_of(getattr(value, each.name)) for each in fields(value))
    nbytes = getattr(value, "nbytes", 8)  # arrays
    return nbytes if isinstance(nbytes, int) else 8
