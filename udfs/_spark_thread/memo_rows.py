"""Memo rows: answers rows from a memo. For each missing key, one row calls and the others wait."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from itertools import chain, count
from typing import Any, NamedTuple

import pyarrow as pa

from .._memo.answers import BUCKETS, Freshness, compute, latest
from .._memo.directory import Directory
from .._memo.keys import key_of
from .._memo.merge import merge
from .._memo.reader import Reader
from .._memo.writer import Writer
from .._sent.extra_columns import extra_columns
from .._sent.row import Failure, Row
from .._sent.settings import Enrichment, MemoSettings
from .._spark_task import current_partition
from .._trio_thread.task_clock import TaskClock
from .batches import SAFE_BYTES, ranges
from .bridge import TaskOperator
from .conversion import RowConversion
from .reading import values_of
from .recorder import Answer, Call, Recorder, is_refused


class _Hits(NamedTuple):
    """Rows whose answers were in the files.

    Attributes:
        batch: The rows.
        answers: Their answers, without repetition.
        places: The place of each row's answer.
    """

    batch: pa.RecordBatch
    answers: pa.Array
    places: pa.Array


def with_answers(
    enrichment: Enrichment, memo: MemoSettings, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Enrich the rows of one partition from a memo. One task of each query, or micro-batch, merges the memo's files.

    The first row tells which buckets the partition has. The number of the task does not: after `coalesce`, one task has
    several partitions, and `union` numbers the tasks anew.

    Args:
        enrichment: How to enrich the rows.
        memo: How to use the memo.
        batches: The last column is the bucket.

    Raises:
        Exception, MemoError, OSError: As in `MemoRows` and its `run`.
    """
    clock = TaskClock.of_task()
    first = next((batch for batch in batches if batch.num_rows), None)
    if first is not None:
        remainder = first.columns[-1][0].as_py() % memo.partitions
        rows = MemoRows(enrichment, memo, range(remainder, BUCKETS, memo.partitions))
        batches = chain([first], batches)
        del first  # while the task runs, it holds no batch
        yield from rows.run(batches, clock)
    if current_partition() == 0:
        merge(Directory(memo.path, memo.schema))


class MemoRows:
    """Answers rows from a memo. All methods run in Spark's thread.

    A row whose answer is in the files stays Arrow data: only its inputs become Python values, for the key.

    Args:
        enrichment: How to enrich the rows.
        memo: How to use the memo.
        buckets: The buckets that the rows may have.

    Attributes:
        waiting: How many rows wait for the call of another row.
        writer: Writes answers while it is open.
        recorder: Passes it the answers of calls.

    Raises:
        MemoError: The memo cannot be read.
    """

    def __init__(self, enrichment: Enrichment, memo: MemoSettings, buckets: range) -> None:
        directory = Directory(memo.path, memo.schema)
        self._reader = Reader(directory, buckets)
        self.waiting = 0
        self.writer = Writer(directory, memo.write_every, buckets)
        self.recorder = Recorder(enrichment, memo, self.writer)
        self._enrichment = enrichment
        self._settings = enrichment.settings
        self._memo = memo
        self._conversion = RowConversion(enrichment)
        self._freshness = Freshness.at(time.time(), memo.max_age, memo.remember_failures_for)
        self._no_answer = Answer(pa.array([None], memo.schema.field("answer").type))
        self._stand_in_batches = count(-1, -1)
        self._has_extras = bool(extra_columns(enrichment.settings))
        self._hits: list[_Hits] = []  # not yet emitted
        self._answers: dict[int, dict[bytes, Answer]] = {}  # of this task's calls, and remembered failures; by bucket
        self._call_of_key: dict[bytes, Call] = {}
        self._completed: list[tuple[Row, Answer]] = []

    def run(self, batches: Iterable[pa.RecordBatch], clock: TaskClock | None = None) -> Iterator[pa.RecordBatch]:
        """Enrich all batches, whose last column is the bucket.

        Args:
            batches: The rows of the task.
            clock: As for `TaskOperator`.

        Raises:
            Exception: As in `Conversion.run`.
            MemoError: The memo cannot be read.
            OSError: It cannot be written.
        """
        operator = TaskOperator(self._settings, record=self.recorder.record, clock=clock)
        with self.writer, closing(operator):
            for batch in batches:
                for part in self.parts(batch):
                    operator.send(self.missing(part))
                    yield from self._emitted()
                # Rows that wait for a call count towards the buffer, too
                bound = max(1, self._settings.options.bound - self.waiting)
                yield from self._received(operator.chunks_until(bound))
            yield from self._received(operator.last_chunks())

    def _received(self, chunks: Iterator[list[Row]]) -> Iterator[pa.RecordBatch]:
        for rows in chunks:
            for row in rows:
                self._receive(row)
            yield from self._emitted()

    def parts(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The batch in parts with different buckets, so that the answers in the files are not all in memory at once."""
        buckets = batch.columns[-1]
        parts = self._reader.parts(_distinct(buckets))
        if len(parts) == 1:
            yield batch
        else:
            for part in parts:
                yield batch.filter(compute.is_in(buckets, value_set=pa.array(part, pa.int32())))

    def missing(self, batch: pa.RecordBatch) -> list[Row]:
        """The rows of a part to call the function for. The others are complete, or wait for one of these."""
        *columns, buckets = batch.columns
        batch = pa.RecordBatch.from_arrays(columns, schema=pa.schema(list(batch.schema)[:-1]))
        keys = self._keys(batch)
        known = self._known(_distinct(buckets), keys)
        if known.num_rows:
            places = compute.index_in(keys, value_set=known.column("key").combine_chunks())
            answers = known.column("answer").combine_chunks()
            self._hits.append(_Hits(batch.filter(compute.is_valid(places)), answers, places.drop_null()))
            is_missing = compute.is_null(places)
            batch, buckets, keys = batch.filter(is_missing), buckets.filter(is_missing), keys.filter(is_missing)
        rows = zip(self._conversion.read(batch), buckets.to_pylist(), keys.to_pylist(), strict=True)
        return [row for row, bucket, key in rows if self._needs_call(row, bucket, key)]

    def _keys(self, batch: pa.RecordBatch) -> pa.Array:
        """The key of each row; null for a row that needs none, because it fails or is skipped."""
        enrichment, version, skips_nulls = self._enrichment, self._memo.version, self._settings.skip_nulls
        values, failures = values_of([batch.column(n) for n in enrichment.inputs], enrichment.zone)
        keys = [
            None if n in failures or (skips_nulls and None in inputs) else key_of(version, inputs)
            for n, inputs in enumerate(values)
        ]
        return pa.array(keys, pa.binary())

    def _known(self, buckets: Sequence[int], keys: pa.Array) -> pa.Table:
        """The answers in the files that count for these keys. Failures among them go to `_answers`."""
        if self._memo.in_buckets and buckets:  # no row of an earlier bucket follows
            for bucket in [each for each in self._answers if each < buckets[0]]:
                del self._answers[bucket]
        found = latest(self._reader.find(buckets, keys), self._freshness)
        is_failure = compute.is_valid(found.column("error"))
        for failure in found.select(["bucket", "key", "error"]).filter(is_failure).to_pylist():
            answer = Answer(self._no_answer.value, failure["error"])
            self._answers.setdefault(failure["bucket"], {}).setdefault(failure["key"], answer)
        return found.filter(compute.invert(is_failure))

    def _needs_call(self, row: Row, bucket: int, key: bytes | None) -> bool:
        if key is None:
            self._complete(row, self._no_answer)
            return False
        answer = self._answers.get(bucket, {}).get(key)
        if answer is not None:
            self._complete_without_call(row, answer)
        elif key in self._call_of_key:
            self._call_of_key[key].waiting.append(row)
            self.waiting += 1
        else:
            self._call_of_key[key] = row.call = Call(bucket, key)
            return True
        return False

    def _receive(self, row: Row) -> None:
        """Complete a row whose call has ended, and those that wait for it. Later rows get the answer, too."""
        call: Call = row.call
        answer = call.answer
        assert answer is not None
        self._complete(row, answer)
        has_answer = not is_refused(row)
        for other in call.waiting:
            self._complete_without_call(other, answer, is_cached=has_answer)
        self.waiting -= len(call.waiting)
        del self._call_of_key[call.key]
        if has_answer:
            self._answers.setdefault(call.bucket, {})[call.key] = answer

    def _complete_without_call(self, row: Row, answer: Answer, *, is_cached: bool = True) -> None:
        """Complete a row with the answer of another row's call."""
        row.cached = is_cached
        if answer.error is not None:
            row.failure = Failure(_remembered(answer.error), 0, 0.0)
        self._complete(row, answer)

    def _complete(self, row: Row, answer: Answer) -> None:
        """Queue a row with this answer for output.

        Raises:
            Exception: The row has failed, and `on_error` is "raise".
        """
        if row.failure is not None and self._settings.on_error == "raise":
            raise row.failure.exception
        self._completed.append((row, answer))

    def _emitted(self) -> Iterator[pa.RecordBatch]:
        """The rows whose answers were in the files, and those that are completed."""
        hits, self._hits = self._hits, []
        for each in hits:
            yield from self._with_answers(each)
        completed, self._completed = self._completed, []
        for start, end in ranges([answer.value.nbytes for _, answer in completed]):
            rows = [row for row, _ in completed[start:end]]
            answers = pa.concat_arrays([answer.value for _, answer in completed[start:end]])
            if self._enrichment.flatten:
                parents, outputs, repeats = self._exploded(answers, [row.failure is not None for row in rows])
                yield from self._conversion.with_results([rows[parent] for parent in parents], outputs, repeats)
            else:
                yield from self._conversion.with_results(rows, answers)
            self._conversion.inputs.release(rows)

    def _with_answers(self, hits: _Hits) -> Iterator[pa.RecordBatch]:
        for start, end in ranges(_sizes(hits, has_lists=bool(self._enrichment.flatten))):
            batch = hits.batch.slice(start, end - start)
            answers = hits.answers.take(hits.places.slice(start, end - start))
            rows = self._stand_ins(len(answers))
            if self._enrichment.flatten:
                parents, answers, _ = self._exploded(answers, [False] * len(answers))
                batch = batch.take(pa.array(parents, pa.int64()))
                rows = [rows[parent] for parent in parents]
            yield from self._conversion.beside(batch, rows, answers)

    def _stand_ins(self, number: int) -> list[Row]:
        """Rows that stand for as many hits in the columns that report how a result was obtained."""
        if not self._has_extras:
            return [Row((), 0, 0)] * number
        batch = next(self._stand_in_batches)  # the metrics tell rows apart by batch and index
        rows = [Row((), batch, index) for index in range(number)]
        for row in rows:
            row.cached = True
        return rows

    def _exploded(self, answers: pa.Array, has_failed: Sequence[bool]) -> tuple[list[int], pa.Array, int]:
        """The place of the row of each output, the outputs, and the largest number of outputs of one row."""
        lengths = compute.fill_null(compute.list_value_length(answers), 0)
        has_null = compute.equal(lengths, 0)
        if self._enrichment.flatten != "outer":
            has_null = compute.and_(has_null, pa.array(has_failed))
        lists = compute.if_else(has_null, pa.scalar([None], answers.type), answers)
        return compute.list_parent_indices(lists).to_pylist(), lists.flatten(), max(1, compute.max(lengths).as_py())


def _distinct(buckets: pa.Array) -> list[int]:
    """In ascending order."""
    return sorted(compute.unique(buckets).to_pylist())


def _sizes(hits: _Hits, *, has_lists: bool) -> list[int]:
    """Bytes of each row with its answer. Zeros if all of them are few, because counting takes time."""
    batch, answers, places = hits
    lengths = compute.list_value_length(answers).to_pylist() if has_lists else []
    repeats = [max(1, length or 0) for length in lengths] or [1] * len(answers)
    most = max(compute.value_counts(places).field("counts").to_pylist(), default=0)
    if max(repeats) * batch.nbytes + most * answers.nbytes <= SAFE_BYTES:
        return [0] * len(places)
    sizes = [answers.slice(place, 1).nbytes for place in range(len(answers))]
    return [sizes[place] + repeats[place] * batch.slice(row, 1).nbytes for row, place in enumerate(places.to_pylist())]


def _remembered(error: dict[str, Any]) -> Exception:
    """A stand-in for a remembered exception, with its name and message."""
    made: Exception = type(str(error["type"]), (Exception,), {})(error["message"])
    return made
