"""Micro-batch: enriches the rows of a streaming query within a budget, and carries unfinished rows over to the next.

Spark runs three stages, between which rows are payloads: record batches as single values, so that Spark passes the
user's types on without reading them.

1. `Buckets` distributes the rows over the tasks of the second stage.
2. `CarryingProcessor` enriches the rows of a bucket, and keeps unfinished ones in Spark's state store.
3. `unpacked` restores the record batches.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count, takewhile
from typing import Any, Final

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import cloudpickle
from pyspark.sql.types import StructType

from .._sent.row import Failure, Row
from .._sent.settings import CarriedTooLongError, CarryOver, Enrichment
from .._spark_task import SparkTask, current_partition
from .._spark_version import STATE_PARTITIONS
from .._tracebacks import traceback_as_note
from .batches import even_slices, from_payload, slices, to_payload
from .bridge import WaitLimit, enrich
from .conversion import RowConversion

PAYLOAD: Final = "payload binary"

# The rows of a payload in the state store. Spark sends and stores each value as a whole.
MAX_ROWS: Final = 1_000

# The number of slices that one partition can have: the place of a slice is partition * SLICES + its index.
SLICES: Final = 1 << 40

# The last two columns of carried rows. They are found by position, because a user's column may have the same name.
HISTORY = [pa.field("since", pa.int64()), pa.field("attempts", pa.int32())]

VERSION = b"1"
VERSION_KEY = b"udfs.carried"
ORIGIN_KEY = b"udfs.origin"


@dataclass(frozen=True, slots=True)
class Buckets:
    """Cuts record batches into slices, one row each: bucket, place in the input order, payload.

    The slices depend on the partition and its rows only, so a repeated task produces the same ones.

    Args:
        ids: The numbers of the buckets.
        names: The names of the columns in the payloads.
        by_hash: True: the last column is a hash that assigns each row to a bucket, and is dropped. False: the rows are
            distributed evenly, round-robin.
    """

    ids: tuple[int, ...]
    names: tuple[str, ...]
    by_hash: bool = False

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The slices of this task's batches."""
        return self.cut(batches, current_partition())

    def cut(self, batches: Iterator[pa.RecordBatch], partition: int) -> Iterator[pa.RecordBatch]:
        """The slices of a partition's batches, one batch of slices for each."""
        places = count(partition * SLICES)
        first = partition
        for batch in batches:
            if not batch.num_rows:
                continue
            parts = dict(self._by_hash(batch) if self.by_hash else self._evenly(batch, first))
            first += len(parts)
            yield pa.RecordBatch.from_arrays(
                [
                    pa.array([self.ids[index] for index in parts], pa.int32()),
                    pa.array([next(places) for _ in parts], pa.int64()),
                    pa.array([to_payload(part.rename_columns(self.names)) for part in parts.values()], pa.binary()),
                ],
                names=["bucket", "place", "payload"],
            )

    def _evenly(self, batch: pa.RecordBatch, first: int) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Slices of even size for consecutive buckets, round-robin from `first`."""
        for number, part in enumerate(even_slices(batch, min(len(self.ids), batch.num_rows)), first):
            yield number % len(self.ids), part

    def _by_hash(self, batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
        *columns, hashes = batch.columns
        rows = pa.RecordBatch.from_arrays(columns, schema=pa.schema(list(batch.schema)[:-1]))
        chosen = pa.array([value % len(self.ids) for value in hashes.to_pylist()], pa.int32())
        for index in sorted(chosen.unique().to_pylist()):
            mask = pc.equal(chosen, index)  # pyright: ignore[reportAttributeAccessIssue] - made at import
            yield index, rows.filter(mask)


def partitions_of_query(planned: int) -> int:
    """The number of partitions of the stateful stage, in a task of the query; `planned` if Spark does not report it."""
    task = SparkTask.current()
    found = map(task.local_property, STATE_PARTITIONS) if task is not None else ()
    return next((int(number) for number in found if number), planned)


class CarryingProcessor:
    """Spark's `StatefulProcessor` for one bucket. It has the methods of that class, whose import needs protobuf.

    All methods run in Spark's thread, because the client of the state store has one current key and no lock.

    Args:
        enrichment: How to enrich the rows.
        carry_over: The budget, and the limits of the rows that are carried over.
        columns: The input columns. The rows in the state must have the same names and types.
        in_order: Whether the rows of a bucket must be called in order. All new rows are read before the first call
            then.
    """

    def __init__(self, enrichment: Enrichment, carry_over: CarryOver, columns: StructType, *, in_order: bool) -> None:
        self._enrichment: Callable[[], Enrichment] = lambda: enrichment
        self._carry_over = carry_over
        self._names = columns.names
        self._types = [field.dataType.simpleString() for field in columns.fields]
        self._in_order = in_order

    def __getstate__(self) -> dict[str, Any]:
        """With the enrichment as bytes: on the driver, `init` runs in a process without broadcast variables."""
        return {**vars(self), "_enrichment": partial(cloudpickle.loads, cloudpickle.dumps(self._enrichment()))}

    def init(self, handle: Any) -> None:
        """Called by Spark at the start of each task and, once, on the driver."""
        self._handle = handle
        self._state = handle.getListState("carried", PAYLOAD)

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: ARG002, N802, N803 - Spark's
        """Enrich the carried rows, then the new ones. A timer that was not deleted would enrich the former twice."""
        now = timerValues.getCurrentProcessingTimeInMs()
        for timer in list(self._handle.listTimers()):
            self._handle.deleteTimer(timer)
        return self._run(self._payloads(rows), now)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:  # noqa: ARG002, N802, N803 - Spark's
        """Enrich the rows carried over. The bucket has no new ones."""
        return self._run(iter(()), timerValues.getCurrentProcessingTimeInMs())

    def close(self) -> None:
        """Do nothing: clients stay open for the next task of this process."""

    def _run(self, payloads: Iterator[bytes], now: int) -> Iterator[pd.DataFrame]:
        state = [bytes(value) for (value,) in self._state.get()]
        micro_batch = MicroBatch(self._enrichment(), self._carry_over, now)
        with traceback_as_note():
            for batch in micro_batch.run(self._input(state, payloads, now)):
                yield pd.DataFrame({"payload": [to_payload(batch)]})
        values = [(value,) for carried in micro_batch.unfinished() for value in carried.to_state(self._types)]
        if values:
            self._state.put(values)
            self._handle.registerTimer(now + 1)  # expires in the next micro-batch
        elif state:
            self._state.clear()

    def _input(self, state: list[bytes], payloads: Iterator[bytes], now: int) -> Iterator[CarriedRows]:
        for carried, types in CarriedRows.from_state(state):
            names = carried.rows.schema.names
            if (names, types) != (self._names, self._types):
                raise ValueError(
                    f"the rows carried over have the columns {_in_words(names, types)}, but the stream now has "
                    f"{_in_words(self._names, self._types)}: let the query drain before you change its columns"
                )
            yield carried
        for payload in payloads:
            yield CarriedRows.new(from_payload(payload), now)

    def _payloads(self, frames: Iterator[pd.DataFrame]) -> Iterator[bytes]:
        if not self._in_order:
            return (bytes(payload) for frame in frames for payload in frame["payload"])
        ordered = sorted(each for frame in frames for each in zip(frame["place"], frame["payload"], strict=True))
        return (bytes(payload) for _, payload in ordered)


def _in_words(names: list[str], types: list[str]) -> str:
    return ", ".join(f"{name} {dtype}" for name, dtype in zip(names, types, strict=False))


def unpacked(batches: Iterator[pa.RecordBatch], names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The record batches in the payloads of the stateful stage, with these names of columns."""
    for batch in batches:
        for payload in batch.column(0):
            yield from_payload(payload.as_buffer()).rename_columns(names)


class MicroBatch:
    """Enriches the rows of one bucket for as long as the budget lasts.

    Args:
        enrichment: How to enrich the rows.
        carry_over: The budget, and the limits of the rows that are carried over.
        now: When this micro-batch began, in milliseconds since the epoch: the driver's clock, the same for all tasks
            and for every repetition.
    """

    def __init__(self, enrichment: Enrichment, carry_over: CarryOver, now: int) -> None:
        self._settings = enrichment.settings
        self._wait_limit = WaitLimit(carry_over.budget, carry_over.max_rows)
        self._conversion = RowConversion(enrichment)
        self._max_age = carry_over.max_age
        self._now = now
        self._schema: pa.Schema | None = None
        self._unfinished: dict[tuple[int, int], Row] = {}

    def run(self, batches: Iterable[CarriedRows]) -> Iterator[pa.RecordBatch]:
        """The enriched rows. Those that fail without a call keep their places, too.

        Raises:
            CarriedTooLongError: A row is too old, and `on_error` is "raise".
            Exception: As in `enrich`.
        """
        for finished in enrich(map(self._read, batches), self._settings, self._wait_limit):
            yield from self._write(finished)
        # The operator has not taken these if, for example, opening the function took the whole budget
        if failed := list(takewhile(lambda row: row.failure is not None, self._unfinished.values())):
            yield from self._write(failed)

    def unfinished(self) -> list[CarriedRows]:
        """After `run`: the rows to carry over, in input order."""
        rows = list(self._unfinished.values())
        carried = []
        start = 0
        for batch in self._conversion.inputs.take(rows):
            part = rows[start : start + batch.num_rows]
            start += batch.num_rows
            carried.append(CarriedRows(batch, [row.since for row in part], [row.attempts for row in part]))
        return carried

    def _read(self, batch: CarriedRows) -> list[Row]:
        """The rows of a batch. Those that are too old have failed."""
        self._schema = self._schema or batch.rows.schema
        new = batch.rows
        if not new.schema.equals(self._schema):  # settings of the session have changed since the rows were carried over
            new = new.cast(self._schema)
        rows = self._conversion.read(new)
        for row, since, attempts in zip(rows, batch.since, batch.attempts, strict=True):
            row.since, row.attempts = since, attempts
            if row.failure is None:
                row.failure = self._too_old(row)
        self._unfinished |= {(row.batch, row.index): row for row in rows}
        return rows

    def _write(self, rows: list[Row]) -> Iterator[pa.RecordBatch]:
        """The enriched rows, which are finished now."""
        for row in rows:
            del self._unfinished[row.batch, row.index]
        yield from self._conversion.write(rows)

    def _too_old(self, row: Row) -> Failure | None:
        """The failure of a row that is older than `max_age`, or None. It is raised if `on_error` is "raise"."""
        age = (self._now - row.since) / 1000
        if age <= self._max_age:
            return None
        error = CarriedTooLongError(
            f"the row was not finished in {age:.1f} s and {row.attempts} calls: max_age is {self._max_age:g} s"
        )
        if self._settings.on_error == "raise":
            error.add_note(repr(row))
            raise error
        return Failure(error, row.attempts, age)


@dataclass(frozen=True, slots=True)
class CarriedRows:
    """Input rows, new ones or from an earlier micro-batch.

    Attributes:
        rows: The input rows, as Arrow.
        since: When the first micro-batch of each row began, in milliseconds since the epoch.
        attempts: The calls made so far for each row.
    """

    rows: pa.RecordBatch
    since: Sequence[int]
    attempts: Sequence[int]

    @classmethod
    def new(cls, rows: pa.RecordBatch, now: int) -> CarriedRows:
        """Rows that are new in the micro-batch that began at this time."""
        return cls(rows, [now] * rows.num_rows, [0] * rows.num_rows)

    def to_state(self, types: list[str]) -> Iterator[bytes]:
        """The rows as values for the state store, with the Spark types of their columns."""
        history = [pa.array(self.since, pa.int64()), pa.array(self.attempts, pa.int32())]
        metadata = self.rows.schema.metadata or {}
        origin = json.dumps({"types": types})
        schema = pa.schema([*self.rows.schema, *HISTORY], {**metadata, VERSION_KEY: VERSION, ORIGIN_KEY: origin})
        return in_payloads(pa.RecordBatch.from_arrays([*self.rows.columns, *history], schema=schema))

    @classmethod
    def from_state(cls, values: Iterable[bytes]) -> Iterator[tuple[CarriedRows, list[str]]]:
        """The rows in these values of the state store, and the Spark types of their columns.

        Raises:
            ValueError: Another release wrote them, in another format.
        """
        for value in values:
            batch = from_payload(value)
            metadata = dict(batch.schema.metadata or {})
            version = metadata.pop(VERSION_KEY, None)
            if version != VERSION:
                raise ValueError(
                    f"the rows carried over have version {version!r}, but this release reads {VERSION!r}: let the "
                    "query drain with the release that wrote them"
                )
            types = json.loads(metadata.pop(ORIGIN_KEY))["types"]
            *columns, since, attempts = batch.columns
            schema = pa.schema(list(batch.schema)[: len(columns)], metadata or None)
            rows = pa.RecordBatch.from_arrays(columns, schema=schema)
            yield cls(rows, since.to_pylist(), attempts.to_pylist()), types


def in_payloads(batch: pa.RecordBatch) -> Iterator[bytes]:
    """The batch as payloads with a limited number of rows and bytes; none for an empty batch."""
    for start in range(0, batch.num_rows, MAX_ROWS):
        yield from map(to_payload, slices(batch.slice(start, MAX_ROWS)))
