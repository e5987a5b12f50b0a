"""Memo rows: answers rows from a memo. For each missing key, one row calls and the others wait.

`with_answers` is what a task runs. Its `MemoRows` works in Spark's thread; the `Recorder` of that converts the results
of calls, and writes them to the memo, in a thread of the loop.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import chain, count
from typing import Any, NamedTuple

import pyarrow as pa

from trio_asyncio_io.gates import RefusedError

from .._memo.answers import BUCKETS, Freshness, as_table, compute, latest
from .._memo.directory import Directory
from .._memo.keys import key_of
from .._memo.merge import merge
from .._memo.reader import Reader
from .._memo.writer import Writer
from .._sent.extra_columns import extra_columns
from .._sent.row import Failure, Row
from .._sent.settings import Enrichment, MemoSettings
from .._spark_task import current_partition
from .batches import SAFE_BYTES, ranges
from .bridge import TaskOperator
from .conversion import RowConversion
from .reading import values_of
from .writing import ResultWriter


@dataclass(slots=True)
class Answer:
    """An answer.

    Attributes:
        value: An array of one value: the new column, a struct of several, or with `flatten` the list of outputs.
        error: Why the call failed, as a struct; None if it did not.
    """

    value: pa.Array
    error: dict[str, Any] | None = None


@dataclass(slots=True)
class Call:
    """A call in flight: its key, and the rows that wait for it.

    Attributes:
        bucket: The bucket of the key.
        key: Its bytes.
        waiting: The rows that wait for the answer.
        answer: The answer. The recorder sets it before Spark's thread receives the row of the call.
    """

    bucket: int
    key: bytes
    waiting: list[Row] = field(default_factory=list)
    answer: Answer | None = None


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
        Exception, MemoError, OSError: As in `MemoRows`.
    """
    first = next((batch for batch in batches if batch.num_rows), None)
    if first is not None:
        remainder = first.columns[-1][0].as_py() % memo.partitions
        rows = MemoRows(enrichment, memo, range(remainder, BUCKETS, memo.partitions))
        yield from rows.run(chain([first], batches))
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
        has_answer = not _is_refused(row)
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


class Recorder:
    """Writes the answers of calls to the memo as soon as the calls have ended, even while Spark takes no rows.

    Each row is converted on its own. A result that does not fit its type fails its row and loses no other answer;
    Spark's thread raises the failure if `on_error` is "raise".

    Runs where: in a thread of the loop, and never twice at the same time.

    Args:
        enrichment: How to enrich the rows.
        memo: How to use the memo.
        writer: Writes the answers.
    """

    def __init__(self, enrichment: Enrichment, memo: MemoSettings, writer: Writer) -> None:
        enrichment = replace(enrichment, settings=replace(enrichment.settings, on_error="null"))
        self._flatten = enrichment.flatten
        self._conversion = RowConversion(enrichment)
        self._results = ResultWriter(memo.answer, enrichment.zone, enrichment.settings, enrichment.added.names)
        self._memo = memo
        self._writer = writer
        positions = enrichment.inputs
        self._input_places = [positions.index(position) for position in dict.fromkeys(positions)]

    def record(self, rows: Sequence[Row]) -> None:
        """Set the answers of the calls for these rows, and write those to remember.

        Raises:
            OSError: They cannot be written.
        """
        for part, declared in self._results.write(rows, [self._value(row) for row in rows]):
            array = declared.cast(self._memo.schema.field("answer").type)  # without NOT NULL
            places = []
            for place, row in enumerate(part):
                error = None if row.failure is None else row.failure.as_struct()
                row.call.answer = Answer(array.slice(place, 1), error)
                if self._is_remembered(row):
                    places.append(place)
            if places:
                self._write([part[place] for place in places], array.take(pa.array(places)))

    def _value(self, row: Row) -> Any:
        """The result of a row, not yet converted. The row's failure is set if it cannot be read."""
        try:
            if self._flatten:
                outputs = self._conversion.outputs(row)
                return outputs if row.failure is None else None
            return None if row.failure is not None else self._conversion.unwrapped(row.result)
        except Exception as error:  # noqa: BLE001 - the user's object raised it
            row.fail(error)
            return None

    def _is_remembered(self, row: Row) -> bool:
        if row.failure is None:
            return not row.replaced
        return self._memo.remember_failures_for > 0 and not _is_refused(row)

    def _write(self, rows: Sequence[Row], answers: pa.Array) -> None:
        schema = self._memo.schema
        calls: list[Call] = [row.call for row in rows]
        errors = [None if row.failure is None else row.failure.as_struct() for row in rows]
        inputs = [
            pa.array([row.inputs[place] for row in rows], each.type)
            for place, each in zip(self._input_places, schema.field("inputs").type, strict=True)
        ]
        table = as_table(
            schema,
            self._memo.version,
            buckets=pa.array([call.bucket for call in calls]),
            keys=[call.key for call in calls],
            inputs=inputs,
            answers=answers,
            errors=pa.array(errors, schema.field("error").type),
            times=pa.repeat(round(time.time() * 1e6), len(rows)),
        )
        self._writer.add(table)


def _is_refused(row: Row) -> bool:
    """Whether a gate, such as a budget, has refused the row's call. No call was made, so this is not an answer."""
    return row.failure is not None and isinstance(row.failure.exception, RefusedError)
