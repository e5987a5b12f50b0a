"""The enrichment: whole rows in, the same rows with new columns beside the old ones out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from dataclasses import KW_ONLY, dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.types import DataType, MapType, StructType

from .._loop.bridge import enrich
from .._row import Failure, Row
from .._settings import Settings
from .converters import ResultTypeError, only_field
from .input_batches import Carry
from .output import Output, extras_of
from .reading import put_event_times, put_keys, rows_of
from .slices import slices

__all__ = ["Enrichment"]


@dataclass(frozen=True, slots=True)
class Enrichment:
    """What a task does with its record batches, and all that it needs to know; pickled.

    Args:
        settings: How its calls are made.
        added: The new columns.
        zone: The session's time zone.
        inputs: The places of the columns that the function is called with.
        event_time: The place of the event time, or None.
        key: The places of the key columns, in keyed mode.
        flatten: Whether a result is a list of 0 to n rows.
    """

    settings: Settings
    added: StructType
    zone: str
    _: KW_ONLY
    inputs: tuple[int, ...]
    event_time: int | None = None
    key: tuple[int, ...] = ()
    flatten: bool = False

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The enriched record batches."""
        carry = Carry()
        output = self.output()
        rows = (self.rows(batch, carry) for batch in batches if batch.num_rows)
        for chunk in enrich(rows, self.settings):
            yield from self.batches(chunk, carry, output)

    def rows(self, batch: pa.RecordBatch, carry: Carry) -> list[Row]:
        """The rows of a batch, which the carry keeps until `batches` has taken them."""
        inputs = [batch.column(i) for i in self.inputs]
        settings = self.settings
        rows = rows_of(inputs, carry.add(batch), settings.row, on_error=settings.on_error, nbytes=batch.nbytes)
        if self.event_time is not None:
            put_event_times(rows, batch.column(self.event_time))
        if self.key:
            put_keys(rows, [batch.column(i) for i in self.key])
        return rows

    def output(self) -> Output:
        """What makes the new columns of one run."""
        kind: DataType = self.added.fields[0].dataType if len(self.added) == 1 else self.added
        settings = self.settings
        return Output(
            kind,
            zone=self.zone,
            on_error=settings.on_error,
            name=settings.function.name,
            show_values=settings.show_values,
        )

    def batches(self, chunk: list[Row], carry: Carry, output: Output) -> Iterator[pa.RecordBatch]:
        """The enriched rows of a chunk, as one record batch or, of large values, as several; none for no rows."""
        rows, values, repeats = chunk, [row.result for row in chunk], 1
        if self.flatten:
            outputs = [self._outputs(row) for row in chunk]
            # Each output has a row of its own, for it may be the only one of its siblings that does not fit.
            rows = [copy(row) for row, each in zip(chunk, outputs, strict=True) for _ in each]
            values = [value for each in outputs for value in each]
            repeats = max(map(len, outputs))
        start = 0
        for array in output.arrays(rows, self._by_name(values)):
            part = rows[start : start + len(array)]
            start += len(array)
            yield from self._beside(part, array, carry.take(part, repeats))
        carry.release(chunk)

    def _beside(self, rows: list[Row], array: pa.Array, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The new columns of these rows beside their old ones, which come in batches."""
        extras = extras_of(self.settings)
        start = 0
        for old in batches:
            added = array.slice(start, old.num_rows)
            part = rows[start : start + old.num_rows]
            start += old.num_rows
            new = [added] if len(self.added) == 1 else added.flatten()
            columns = [*old.columns, *new, *(extra.array(part) for extra in extras)]
            names = [*old.schema.names, *self.added.names, *(extra.name for extra in extras)]
            yield from slices(pa.RecordBatch.from_arrays(columns, names=_distinct(names)))

    def _outputs(self, row: Row) -> list[Any]:
        """The 0 to n results of a row; one null for a row that failed."""
        if row.failure is not None:
            return [None]
        try:
            return self._listed(row)
        except Exception as error:
            if self.settings.on_error == "raise":
                raise
            row.failure = Failure(error, row.attempts, row.seconds)
            return [None]

    def _listed(self, row: Row) -> list[Any]:
        result = row.result
        if isinstance(result, Iterable) and not isinstance(result, str | bytes | Mapping):
            return list(result)
        raise ResultTypeError(
            f"{self.settings.function.name} returned {type(result).__name__}, and with flatten=True it must "
            f"return a list of 0 to n results, for {row!r}"
        )

    def _by_name(self, values: list[Any]) -> list[Any]:
        """The values of a single new column, where they came under its name."""
        field = self.added.fields[0]
        inner = field.dataType.names if isinstance(field.dataType, StructType) else []
        if len(self.added) > 1 or isinstance(field.dataType, MapType) or inner == [field.name]:
            return values
        return [only_field(value, field.name) for value in values]


def _distinct(names: list[str]) -> list[str]:
    """The names, or others if two are equal: Spark reads a record batch by position, and loses columns of one name."""
    return names if len(set(names)) == len(names) else [str(position) for position in range(len(names))]
