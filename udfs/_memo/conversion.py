"""Conversion of rows with a memo: looks each row up, and calls the function once for each missing key."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .._sent.column_types import arrow_type
from .._sent.row import Failure, Row
from .._sent.settings import Enrichment
from .._spark_thread.batches import slices
from .._spark_thread.bridge import enrich
from .._spark_thread.conversion import RowConversion
from .._spark_thread.converters import only_field
from .._spark_thread.writing import ResultWriter
from .answer_log import AnswerLog
from .answers import Answer, answers_of
from .compaction import tidy
from .files import MemoFiles
from .keys import key_of
from .layout import Layout
from .memo import Memo

__all__ = ["MemoConversion", "MemoTask"]


@dataclass(frozen=True, slots=True)
class MemoTask:
    """How the tasks of a query use a memo. Created on the driver, and pickled.

    Args:
        memo: The options of the memo.
        layout: What it holds.
        columns: The number of the user's columns. The bucket comes behind them.
        in_buckets: Whether the rows are sorted by bucket.
        has_places: Whether the place of the row is behind the bucket. It is the last column of the output, too.
    """

    memo: Memo
    layout: Layout
    columns: int
    in_buckets: bool
    has_places: bool


@dataclass(slots=True)
class _Call:
    """A key that is being called, and the rows that wait for its answer."""

    bucket: int
    key: bytes
    waiting: list[Row] = field(default_factory=list)


class MemoConversion(RowConversion):
    """Converts whole rows. Only rows whose key the memo has not are sent to the loop, one for each key.

    A thread of the loop records answers as soon as their calls have ended. So they are in the memo even if Spark's
    thread is busy, or waits until Spark takes rows. All other methods run in Spark's thread.

    Args:
        enrichment: How to enrich the rows.
        task: How to use the memo.
    """

    def __init__(self, enrichment: Enrichment, task: MemoTask) -> None:
        super().__init__(enrichment)
        now = time.time()
        self._task = task
        self._files = MemoFiles(task.memo.path)
        self._freshness = task.memo.freshness(now)
        kind = task.layout.answer
        self._answers = ResultWriter(kind, enrichment.zone, enrichment.settings)
        self._nothing = pa.array([None], arrow_type(kind))  # imports pandas, for which no answer should have to wait
        self._known: dict[int, dict[bytes, Answer]] = {}
        self._calls: dict[bytes, _Call] = {}
        self._call_of: dict[tuple[int, int], _Call] = {}
        self._waiting = 0
        self._ready: dict[int, tuple[pa.Array, list[int], list[Row]]] = {}
        self._releasing = threading.Lock()

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Enrich all batches.

        Raises:
            Exception: As in `Conversion.run`.
            MemoError: The memo cannot be read.
            OSError: It cannot be written.
        """
        self._task.layout.check(self._files)
        files, every = self._files, self._task.memo.write_every
        with (
            AnswerLog(files.write, every, files.open_journal, partial(tidy, files)) as log,
            closing(
                enrich(
                    map(self.read, batches),
                    self.settings,
                    held=lambda: self._waiting,
                    record=partial(self._record, log),
                )
            ) as chunks,
        ):
            for finished in chunks:
                self._take(finished)
                yield from self._written()

    def read(self, batch: pa.RecordBatch) -> list[Row]:
        """The rows of a batch to call the function for. The others are ready, or wait for one of these."""
        if not batch.num_rows:
            return []
        buckets = batch.column(self._task.columns).to_pylist()
        positions = [n for n in range(batch.num_columns) if n != self._task.columns]
        rows = super().read(_columns_of(batch, positions))
        return [row for row, bucket in zip(rows, buckets, strict=True) if self._is_missing(row, bucket)]

    def _is_missing(self, row: Row, bucket: int) -> bool:
        if row.failure is not None or self.settings.skips(row):
            self._give(row, Answer(self._nothing, 0))
            return False
        key = key_of(self._task.memo.version, row.inputs)
        answer = self._answers_in(bucket).get(key)
        if answer is not None:
            self._share(row, answer)
        elif key in self._calls:
            self._calls[key].waiting.append(row)
            self._waiting += 1
        else:
            self._calls[key] = self._call_of[row.batch, row.index] = _Call(bucket, key)
            return True
        return False

    def _answers_in(self, bucket: int) -> dict[bytes, Answer]:
        known = self._known.get(bucket)
        if known is None:
            if self._task.in_buckets:  # no row of an earlier bucket follows
                self._known.clear()
            known = self._known[bucket] = answers_of(self._files, bucket, self._freshness)
        return known

    def _record(self, log: AnswerLog, rows: list[Row]) -> None:
        """Write the answers of calls to the memo. A row's result becomes its answer. Runs in a thread of the loop."""
        for part, values in self._answers.write(rows, [self._result(row) for row in rows]):
            for place, row in enumerate(part):
                row.result = Answer(values, place, None if row.failure is None else row.failure.as_struct())
            self._log(log, part, values)

    def _take(self, rows: list[Row]) -> None:
        """Take the answers of calls: for their own rows, for those that wait, and for later ones."""
        for row in rows:
            call = self._call_of.pop((row.batch, row.index))
            answer: Answer = row.result
            self._give(row, answer)
            for other in call.waiting:
                self._share(other, answer)
            self._waiting -= len(call.waiting)
            del self._calls[call.key]
            if call.bucket in self._known:
                self._known[call.bucket][call.key] = answer

    def _result(self, row: Row) -> Any:
        """The result of a row; with `flatten`, a list of its outputs."""
        wrapper = self._wrapper
        if row.failure is not None:
            return None
        if not self._enrichment.flatten:
            return row.result if wrapper is None else only_field(row.result, wrapper)
        outputs = self._outputs(row)
        if row.failure is not None:
            return None
        return outputs if wrapper is None else [only_field(output, wrapper) for output in outputs]

    def _share(self, row: Row, answer: Answer) -> None:
        """Give a row the answer of a call that was made for another."""
        row.cached = True
        if answer.error is not None:
            row.failure = Failure(_remembered(answer.error), 0, 0.0)
        self._give(row, answer)

    def _give(self, row: Row, answer: Answer) -> None:
        _, indices, rows = self._ready.setdefault(id(answer.values), (answer.values, [], []))
        indices.append(answer.place)
        rows.append(row)

    def _log(self, log: AnswerLog, rows: Sequence[Row], values: pa.Array) -> None:
        """Write the answers of these rows, whose array this is."""
        places = [place for place, row in enumerate(rows) if self._is_remembered(row)]
        if not places:
            return
        kept = [rows[place] for place in places]
        calls = [self._call_of[row.batch, row.index] for row in kept]
        with self._releasing:
            batches = list(self._inputs.take(kept))
        inputs = [
            pa.concat_arrays([each.column(n) for each in batches]) for n in dict.fromkeys(self._enrichment.inputs)
        ]
        table = self._task.layout.table(
            [(call.bucket, call.key) for call in calls],
            inputs,
            values.take(pa.array(places, pa.int64())),
            [row.result.error for row in kept],
            at=time.time(),
            version=self._task.memo.version,
        )
        log.add(table)

    def _is_remembered(self, row: Row) -> bool:
        if row.failure is not None:
            return self._task.memo.remember_failures_for > 0
        return not row.replaced

    def _written(self) -> Iterator[pa.RecordBatch]:
        """The rows that are ready, as one batch or more for each array with answers of theirs."""
        ready, self._ready = self._ready, {}
        for values, indices, rows in ready.values():
            answers = values.take(pa.array(indices, pa.int64()))
            if self._enrichment.flatten:
                yield from self._enriched_rows(*self._exploded(rows, answers))
            else:
                yield from self._enriched_rows(rows, answers, 1)
            with self._releasing:
                self._inputs.release(rows)

    def _exploded(self, rows: Sequence[Row], answers: pa.Array) -> tuple[list[Row], pa.Array, int]:
        """A row for each output, the outputs, and the largest number of outputs of one row."""
        lengths: Any = pc.list_value_length(answers)  # pyright: ignore[reportAttributeAccessIssue] - made at import
        keeps_all = self._enrichment.flatten == "outer"
        places: list[int | None] = []
        repeated: list[Row] = []
        start = 0
        for row, length in zip(rows, lengths.to_pylist(), strict=True):
            own: list[int | None] = list(range(start, start + (length or 0)))
            start += length or 0
            own = own or ([None] if keeps_all or row.failure is not None else [])
            places += own
            repeated += [row] * len(own)
        return (
            repeated,
            answers.flatten().take(pa.array(places, pa.int64())),
            max(1, *(n or 0 for n in lengths.to_pylist())),
        )

    def _enriched_rows(self, rows: Sequence[Row], answers: pa.Array, repeats: int) -> Iterator[pa.RecordBatch]:
        start = 0
        for old in self._inputs.take(rows, repeats):
            end = start + old.num_rows
            yield from slices(self._enriched(old, rows[start:end], answers.slice(start, old.num_rows)))
            start = end

    def _enriched(self, old: pa.RecordBatch, rows: Sequence[Row], results: pa.Array) -> pa.RecordBatch:
        enriched = super()._enriched(old, rows, results)
        if not self._task.has_places:
            return enriched
        place = self._task.columns
        others = chain(range(place), range(place + 1, enriched.num_columns))
        return _columns_of(enriched, [*others, place])


def _columns_of(batch: pa.RecordBatch, positions: Sequence[int]) -> pa.RecordBatch:
    return batch.select(list(positions))


def _remembered(error: dict[str, Any]) -> Exception:
    """An exception with the name and the message of the one that the call raised."""
    made: Exception = type(str(error["type"]), (Exception,), {})(error["message"])
    return made
