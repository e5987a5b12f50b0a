"""Recorder: writes the answers of calls to a memo. It works in a thread of the loop."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from trio_asyncio_io.gates import RefusedError

from .._memo.answers import as_table
from .._memo.writer import Writer
from .._sent.row import Row
from .._sent.settings import Enrichment, MemoSettings
from .conversion import RowConversion
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
        return self._memo.remember_failures_for > 0 and not is_refused(row)

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


def is_refused(row: Row) -> bool:
    """Whether a gate, such as a budget, has refused the row's call. No call was made, so this is not an answer."""
    return row.failure is not None and isinstance(row.failure.exception, RefusedError)
