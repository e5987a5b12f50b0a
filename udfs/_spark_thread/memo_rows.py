"""Memo rows: rows whose key has an answer make no call, and of the others one row for each key does."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext

from .._memo.answers import BUCKETS, Freshness, latest
from .._memo.directory import Directory
from .._memo.keys import key_of
from .._memo.merge import merge
from .._memo.reader import Reader
from .._memo.writer import Writer
from .._sent.column_types import arrow_type
from .._sent.row import Failure, Row
from .._sent.settings import Enrichment, MemoTask
from .batches import ranges, slices
from .bridge import TaskOperator
from .conversion import RowConversion
from .memo_recorder import Answer, Call, Recorder, is_refused

__all__ = ["MemoRows", "read_answers"]


class MemoRows:
    """The rows of one task. All methods run in Spark's thread.

    Args:
        enrichment: How to enrich the rows.
        task: How to use the memo.

    Attributes:
        waiting: How many rows wait for the call of another row.
        writer: Writes answers while it is open.
        recorder: Passes it the answers of calls.

    Raises:
        MemoError: The memo cannot be read.
    """

    def __init__(self, enrichment: Enrichment, task: MemoTask) -> None:
        context = TaskContext.get()
        self._partition = 0 if context is None else context.partitionId()
        buckets = range(self._partition, BUCKETS, task.partitions)
        self._directory = Directory(task.path, task.schema)
        self._reader = Reader(self._directory, buckets)
        self._calls: dict[tuple[int, int], Call] = {}  # that have not been received, by batch and index of their rows
        self.waiting = 0
        self.writer = Writer(self._directory, task.write_every, buckets)
        self.recorder = Recorder(enrichment, task, self._calls, self.writer)
        self._enrichment = enrichment
        self._settings = enrichment.settings
        self._task = task
        self._conversion = RowConversion(enrichment)
        self._freshness = Freshness.at(time.time(), task.max_age, task.remember_failures_for)
        self._no_answer = Answer(pa.array([None], arrow_type(task.answer)))
        self._known: dict[int, dict[bytes, Answer]] = {}
        self._call_of_key: dict[bytes, Call] = {}
        self._completed: list[tuple[Row, Answer]] = []

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Enrich all batches, whose last column is the bucket.

        Raises:
            Exception: As in `Conversion.run`.
            MemoError: The memo cannot be read.
            OSError: It cannot be written.
        """
        operator = TaskOperator(self._settings, record=self.recorder.record)
        with self.writer, closing(operator):
            for batch in batches:
                operator.send(self.missing(batch))
                # Rows that wait for a call count towards the buffer, too
                bound = max(1, self._settings.options.bound - self.waiting)
                yield from self._received(operator.chunks_until(bound))
                yield from self._emitted()
            yield from self._received(operator.last_chunks())
        if self._partition == 0:  # one task of each query, and of each micro-batch
            merge(self._directory)

    def _received(self, chunks: Iterator[list[Row]]) -> Iterator[pa.RecordBatch]:
        for rows in chunks:
            for row in rows:
                self._receive(row)
            yield from self._emitted()

    def missing(self, batch: pa.RecordBatch) -> list[Row]:
        """The rows of a batch to call the function for. The others are complete, or wait for one of these."""
        *columns, buckets = batch.columns
        schema = pa.schema(list(batch.schema)[:-1])
        rows = self._conversion.read(pa.RecordBatch.from_arrays(columns, schema=schema))
        pairs = zip(rows, buckets.to_pylist(), strict=True)
        return [row for row, bucket in pairs if self._needs_call(row, bucket)]

    def _needs_call(self, row: Row, bucket: int) -> bool:
        if row.failure is not None or self._settings.skips(row):
            self._complete(row, self._no_answer)
            return False
        key = key_of(self._task.version, row.inputs)
        answer = self._known_in(bucket).get(key)
        if answer is not None:
            self._complete_without_call(row, answer)
        elif key in self._call_of_key:
            self._call_of_key[key].waiting.append(row)
            self.waiting += 1
        else:
            self._call_of_key[key] = self._calls[row.batch, row.index] = Call(bucket, key)
            return True
        return False

    def _known_in(self, bucket: int) -> dict[bytes, Answer]:
        """The answers of a bucket that count, by key."""
        known = self._known.get(bucket)
        if known is None:
            if self._task.in_buckets:  # no row of an earlier bucket follows
                self._known.clear()
            table = latest(self._reader.bucket(bucket), self._freshness)
            known = self._known[bucket] = _by_key(table, self._no_answer.value.type)
        return known

    def _receive(self, row: Row) -> None:
        """Complete a row whose call has ended, and those that wait for it. Later rows know the answer."""
        call = self._calls.pop((row.batch, row.index))
        answer = call.answer
        assert answer is not None
        self._complete(row, answer)
        has_answer = not is_refused(row)
        for other in call.waiting:
            self._complete_without_call(other, answer, is_cached=has_answer)
        self.waiting -= len(call.waiting)
        del self._call_of_key[call.key]
        if call.bucket in self._known and has_answer:
            self._known[call.bucket][call.key] = answer

    def _complete_without_call(self, row: Row, answer: Answer, *, is_cached: bool = True) -> None:
        """Complete a row with the answer of another row's call."""
        row.cached = is_cached
        if answer.error is not None:
            row.failure = Failure(_remembered(answer.error), 0, 0.0)
        self._complete(row, answer)

    def _complete(self, row: Row, answer: Answer) -> None:
        """Have a row emitted with this answer.

        Raises:
            Exception: The row has failed, and `on_error` is "raise".
        """
        if row.failure is not None and self._settings.on_error == "raise":
            raise row.failure.exception
        self._completed.append((row, answer))

    def _emitted(self) -> Iterator[pa.RecordBatch]:
        """The completed rows."""
        completed, self._completed = self._completed, []
        for start, end in ranges([answer.value.nbytes for _, answer in completed]):
            rows = [row for row, _ in completed[start:end]]
            answers = pa.concat_arrays([answer.value for _, answer in completed[start:end]])
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


def read_answers(
    path: str, schema: pa.Schema, freshness: Freshness, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The answers of a memo that count, bucket by bucket.

    Args:
        path: The directory.
        schema: The columns of its files.
        freshness: Which answers count.
        batches: The only column has the numbers of the buckets.

    Raises:
        MemoError: The memo cannot be read.
    """
    reader = Reader(Directory(path, schema))
    for batch in batches:
        for bucket in batch.column(0).to_pylist():
            table = latest(reader.bucket(bucket), freshness)
            for part in table.combine_chunks().to_batches():
                yield from slices(part)


def _by_key(table: pa.Table, answer_type: pa.DataType) -> dict[bytes, Answer]:
    values = table.column("answer").combine_chunks()
    values = pa.concat_arrays(values.chunks) if isinstance(values, pa.ChunkedArray) else values
    try:
        values = values.cast(answer_type)
    except pa.ArrowTypeError:  # old versions of Arrow do not cast to types in which a field is NOT NULL
        values = values.view(answer_type)
    errors = table.column("error")
    return {
        key: Answer(values.slice(row, 1), errors[row].as_py() if errors[row].is_valid else None)
        for row, key in enumerate(table.column("key").to_pylist())
    }


def _remembered(error: dict[str, Any]) -> Exception:
    """A stand-in for a remembered exception, with its name and message."""
    made: Exception = type(str(error["type"]), (Exception,), {})(error["message"])
    return made
