"""Memo: rows whose key has an answer already make no call, and of the others one row for each key does."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext

from trio_asyncio_io.gates import RefusedError

from .._memo.answers import BUCKETS, Freshness, latest
from .._memo.directory import Directory
from .._memo.keys import key_of
from .._memo.merge import merge
from .._memo.writer import Writer
from .._sent.column_types import arrow_type
from .._sent.memo import MemoTask
from .._sent.row import Failure, Row
from .._sent.settings import Enrichment
from .batches import slices
from .bridge import TaskCalls
from .conversion import RowConversion
from .writing import ResultWriter

__all__ = ["MemoReading", "MemoRows"]


@dataclass(slots=True)
class _Answer:
    """An answer: the values of an array of answers at a place, and the error of a call that failed."""

    values: pa.Array
    place: int
    error: dict[str, Any] | None = None


@dataclass(slots=True)
class _Call:
    """A key that is being called, the rows that wait for its answer, and this answer once it is recorded."""

    bucket: int
    key: bytes
    waiting: list[Row] = field(default_factory=list)
    answer: _Answer | None = None


class MemoRows:
    """The rows of one task.

    A thread of the loop records answers as soon as their calls have ended. So they are in the memo even while Spark
    takes no rows. All other methods run in Spark's thread.

    Args:
        enrichment: How to enrich the rows.
        task: How to use the memo.
    """

    def __init__(self, enrichment: Enrichment, task: MemoTask) -> None:
        self._enrichment = enrichment
        self._settings = enrichment.settings
        self._task = task
        self._conversion = RowConversion(enrichment)
        self._directory = Directory(task.path, task.schema)
        self._freshness = Freshness.at(time.time(), task.max_age, task.remember_failures_for)
        self._answers = ResultWriter(task.answer, enrichment.zone, enrichment.settings)
        self._nothing = pa.array([None], arrow_type(task.answer))
        positions = enrichment.inputs
        self._input_places = [positions.index(position) for position in dict.fromkeys(positions)]
        self._known: dict[int, dict[bytes, _Answer]] = {}
        self._calls: dict[bytes, _Call] = {}
        self._call_of: dict[tuple[int, int], _Call] = {}
        self._waiting = 0
        self._ready: dict[int, tuple[pa.Array, list[int], list[Row]]] = {}

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Enrich all batches, whose last column is the bucket.

        Raises:
            Exception: As in `Conversion.run`.
            MemoError: The memo cannot be read.
            OSError: It cannot be written.
        """
        self._directory.check()
        context = TaskContext.get()
        partition = 0 if context is None else context.partitionId()
        buckets = range(partition, BUCKETS, self._task.partitions)
        own = Directory(self._task.path, self._task.schema)
        with Writer(own, self._task.write_every, buckets) as writer:
            yield from self._enriched(batches, writer)
        if partition == 0:  # one task of each query, and of each micro-batch
            merge(own)

    def _enriched(self, batches: Iterable[pa.RecordBatch], writer: Writer) -> Iterator[pa.RecordBatch]:
        calls: TaskCalls | None = None
        try:
            for batch in batches:
                if rows := self._read(batch, writer):
                    calls = calls or TaskCalls(self._settings, record=lambda rows: self._record(rows, writer))
                    calls.send(rows)
                if calls is not None:
                    # Rows that wait for a call count towards the buffer, too
                    yield from self._finished(calls, max(1, self._settings.options.bound - self._waiting))
                yield from self._written()
            if calls is not None:
                calls.end()
                yield from self._finished(calls, 1)
        finally:
            if calls is not None:
                calls.stop()

    def _finished(self, calls: TaskCalls, bound: int) -> Iterator[pa.RecordBatch]:
        for rows in calls.chunks_until(bound):
            self._take(rows)
            yield from self._written()

    def _read(self, batch: pa.RecordBatch, writer: Writer) -> list[Row]:
        """The rows of a batch to call the function for. The others are ready, or wait for one of these."""
        *columns, buckets = batch.columns
        rows = self._conversion.read(pa.RecordBatch.from_arrays(columns, names=batch.schema.names[:-1]))
        pairs = zip(rows, buckets.to_pylist(), strict=True)
        return [row for row, bucket in pairs if self._is_missing(row, bucket, writer)]

    def _is_missing(self, row: Row, bucket: int, writer: Writer) -> bool:
        if row.failure is not None or self._settings.skips(row):
            self._give(row, _Answer(self._nothing, 0))
            return False
        key = key_of(self._task.version, row.inputs)
        answer = self._known_in(bucket, writer).get(key)
        if answer is not None:
            self._share(row, answer)
        elif key in self._calls:
            self._calls[key].waiting.append(row)
            self._waiting += 1
        else:
            self._calls[key] = self._call_of[row.batch, row.index] = _Call(bucket, key)
            return True
        return False

    def _known_in(self, bucket: int, writer: Writer) -> dict[bytes, _Answer]:
        """The answers of a bucket that count, by key."""
        known = self._known.get(bucket)
        if known is None:
            if self._task.in_buckets:  # no row of an earlier bucket follows
                self._known.clear()
            table = latest(self._directory.bucket(bucket, without=writer.log), self._freshness)
            known = self._known[bucket] = _by_key(table, self._nothing.type)
        return known

    def _record(self, rows: list[Row], writer: Writer) -> None:
        """Write the answers of calls to the memo. Runs in a thread of the loop."""
        for part, values in self._answers.write(rows, [self._value(row) for row in rows]):
            for place, row in enumerate(part):
                error = None if row.failure is None else row.failure.as_struct()
                self._call_of[row.batch, row.index].answer = _Answer(values, place, error)
            if remembered := [row for row in part if self._is_remembered(row)]:
                writer.add(self._table(remembered))

    def _value(self, row: Row) -> Any:
        """What the memo has for a row; with `flatten`, the list of its outputs."""
        if self._enrichment.flatten:
            outputs = self._conversion.outputs(row)
            return outputs if row.failure is None else None
        return None if row.failure is not None else self._conversion.unwrapped(row.result)

    def _is_remembered(self, row: Row) -> bool:
        if row.failure is None:
            return not row.replaced
        return self._task.remember_failures_for > 0 and not _is_refused(row)

    def _table(self, rows: Sequence[Row]) -> pa.Table:
        """The answers of these rows, as a file has them."""
        schema = self._task.schema
        calls = [self._call_of[row.batch, row.index] for row in rows]
        answers = [call.answer for call in calls if call.answer is not None]
        fields = list(schema.field("inputs").type)
        inputs = [
            pa.array([row.inputs[place] for row in rows], each.type)
            for place, each in zip(self._input_places, fields, strict=True)
        ]
        values = answers[0].values.take(pa.array([answer.place for answer in answers], pa.int64()))
        columns = [
            pa.array([call.bucket for call in calls], pa.int32()),
            pa.array([call.key for call in calls], pa.binary()),
            pa.StructArray.from_arrays(inputs, fields=fields),
            values.cast(schema.field("answer").type),
            pa.array([answer.error for answer in answers], schema.field("error").type),
            pa.array([round(time.time() * 1e6)] * len(rows), pa.int64()).cast(schema.field("answered_at").type),
            pa.array([self._task.function] * len(rows), pa.string()),
            pa.array([self._task.version] * len(rows), pa.string()),
        ]
        return pa.Table.from_arrays(columns, schema=schema)

    def _take(self, rows: list[Row]) -> None:
        """Take the answers of calls: for their own rows, for those that wait, and for later ones."""
        for row in rows:
            call = self._call_of.pop((row.batch, row.index))
            answer = call.answer
            assert answer is not None
            self._give(row, answer)
            is_refused = _is_refused(row)
            for other in call.waiting:
                self._share(other, answer, is_cached=not is_refused)
            self._waiting -= len(call.waiting)
            del self._calls[call.key]
            if call.bucket in self._known and not is_refused:
                self._known[call.bucket][call.key] = answer

    def _share(self, row: Row, answer: _Answer, *, is_cached: bool = True) -> None:
        """Give a row the answer of another row's call."""
        row.cached = is_cached
        if answer.error is not None:
            row.failure = Failure(_remembered(answer.error), 0, 0.0)
        self._give(row, answer)

    def _give(self, row: Row, answer: _Answer) -> None:
        _, places, rows = self._ready.setdefault(id(answer.values), (answer.values, [], []))
        places.append(answer.place)
        rows.append(row)

    def _written(self) -> Iterator[pa.RecordBatch]:
        """The rows that are ready, as one batch or more for each array that has answers of theirs."""
        ready, self._ready = self._ready, {}
        for values, places, rows in ready.values():
            answers = values.take(pa.array(places, pa.int64()))
            if self._enrichment.flatten:
                yield from self._conversion.enriched(*self._exploded(rows, answers))
            else:
                yield from self._conversion.enriched(rows, answers)
            self._conversion.release(rows)

    def _exploded(self, rows: Sequence[Row], answers: pa.Array) -> tuple[list[Row], pa.Array, int]:
        """A row for each output, the outputs, and the largest number of outputs of one row."""
        list_value_length: Any = pc.list_value_length  # pyright: ignore[reportAttributeAccessIssue] - made at import
        lengths = [length or 0 for length in list_value_length(answers).to_pylist()]
        repeated: list[Row] = []
        places: list[int | None] = []
        start = 0
        for row, length in zip(rows, lengths, strict=True):
            is_kept = length or row.failure is not None or self._enrichment.flatten == "outer"
            places += range(start, start + length) if length else [None] if is_kept else []
            repeated += [row] * (max(1, length) if is_kept else 0)
            start += length
        return repeated, answers.flatten().take(pa.array(places, pa.int64())), max(1, *lengths)


class MemoReading:
    """Reads the answers of a memo that count, bucket by bucket.

    Args:
        path: The directory.
        schema: The columns of its files.
        freshness: Which answers count.
    """

    def __init__(self, path: str, schema: pa.Schema, freshness: Freshness) -> None:
        self._directory = Directory(path, schema)
        self._freshness = freshness

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The answers in the buckets whose numbers are the only column of the batches.

        Raises:
            MemoError: The memo cannot be read.
        """
        self._directory.check()
        for batch in batches:
            for bucket in batch.column(0).to_pylist():
                table = latest(self._directory.bucket(bucket), self._freshness)
                for part in table.combine_chunks().to_batches():
                    yield from slices(part)


def _by_key(table: pa.Table, kind: pa.DataType) -> dict[bytes, _Answer]:
    values = table.column("answer").combine_chunks()
    values = pa.concat_arrays(values.chunks) if isinstance(values, pa.ChunkedArray) else values
    try:
        values = values.cast(kind)
    except pa.ArrowTypeError:  # old versions of Arrow do not cast to types in which a field is NOT NULL
        values = values.view(kind)
    errors = table.column("error")
    return {
        key: _Answer(values, row, errors[row].as_py() if errors[row].is_valid else None)
        for row, key in enumerate(table.column("key").to_pylist())
    }


def _is_refused(row: Row) -> bool:
    """Whether a gate, such as a budget, has refused the row's call. No call was made, so this is not an answer."""
    return row.failure is not None and isinstance(row.failure.exception, RefusedError)


def _remembered(error: dict[str, Any]) -> Exception:
    """An exception with the name and the message of the one that the call raised."""
    made: Exception = type(str(error["type"]), (Exception,), {})(error["message"])
    return made
