"""Conversion: Arrow batches to rows, and finished rows back to Arrow, for column UDFs and for DataFrame operators."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from inspect import Signature
from itertools import count
from typing import Any, Generic, TypeVar

import pyarrow as pa
from pyspark.sql.types import DataType, MapType, StructType

from .._sent.extra_columns import extra_columns
from .._sent.row import Row
from .._sent.settings import Enrichment, Settings
from .._sent.signature import check_arity
from .batches import InputBatches, slices
from .bridge import enrich
from .converters import only_field
from .misfits import ResultTypeError
from .reading import rows_of, set_event_times, set_keys
from .writing import ResultWriter

InputT = TypeVar("InputT")
OutputT = TypeVar("OutputT")


class Conversion(ABC, Generic[InputT, OutputT]):
    """Both ends of a Spark task: reads batches as rows, and writes finished rows as batches.

    Args:
        settings: The settings of the UDF.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @abstractmethod
    def read(self, batch: InputT) -> list[Row]:
        """The rows of one input batch."""

    @abstractmethod
    def write(self, rows: list[Row]) -> Iterator[OutputT]:
        """Finished rows as output batches: usually one, more if the values are large."""

    def run(self, batches: Iterable[InputT]) -> Iterator[OutputT]:
        """Enrich all batches. Calls stay in flight from one batch to the next.

        Raises:
            Exception: As in `enrich`, `read` and `write`.
        """
        for finished in enrich(map(self.read, batches), self.settings):
            yield from self.write(finished)
            del finished  # while the task waits for more, nothing but the bridge holds results


class ColumnConversion(Conversion["pa.Array | tuple[pa.Array, ...]", pa.Array]):
    """Converts the columns that the function is called with, and its results.

    Args:
        settings: The settings of the UDF.
        dtype: The declared type of a result.
        zone: The time zone of the query.
        signature: The parameters of the function, or None. SQL may call it with any number of columns.
    """

    def __init__(self, settings: Settings, dtype: DataType, zone: str, signature: Signature | None = None) -> None:
        super().__init__(settings)
        self._signature = signature
        self._numbers = count()
        self._writer = ResultWriter(dtype, zone, settings)
        self._extras = extra_columns(settings)

    def read(self, batch: pa.Array | tuple[pa.Array, ...]) -> list[Row]:
        """The rows of one batch, which Spark passes as an array or, for several columns, a tuple of arrays."""
        columns = batch if isinstance(batch, tuple) else (batch,)
        settings = self.settings
        check_arity(settings.function.name, self._signature, [column.type for column in columns])
        return rows_of(columns, next(self._numbers), show_values=settings.show_values, on_error=settings.on_error)

    def write(self, rows: list[Row]) -> Iterator[pa.Array]:
        """The results, in the order of the rows."""
        for part, results in self._writer.write(rows, [row.result for row in rows]):
            yield from slices(self._with_extras(results, part))

    def _with_extras(self, results: pa.Array, rows: Sequence[Row]) -> pa.Array:
        if not self._extras:
            return results
        arrays = [results, *(extra.array(rows) for extra in self._extras)]
        return pa.StructArray.from_arrays(arrays, names=["result", *(extra.name for extra in self._extras)])


class RowConversion(Conversion[pa.RecordBatch, pa.RecordBatch]):
    """Converts whole rows. Only the columns that the function is called with become Python values.

    Args:
        enrichment: How to enrich the rows.

    Attributes:
        inputs: The input of the rows that are not written.
    """

    def __init__(self, enrichment: Enrichment) -> None:
        super().__init__(enrichment.settings)
        self._enrichment = enrichment
        self._writer = ResultWriter(
            enrichment.output_type, enrichment.zone, enrichment.settings, enrichment.added.names
        )
        self._extras = extra_columns(enrichment.settings)
        self._new_names = [*enrichment.added.names, *(extra.name for extra in self._extras)]
        self._wrapper = _wrapper(enrichment.added)
        self.inputs = InputBatches()

    def read(self, batch: pa.RecordBatch) -> list[Row]:
        """The rows of a batch, which is held until all of them are written."""
        if not batch.num_rows:
            return []
        enrichment, settings = self._enrichment, self.settings
        inputs = [batch.column(i) for i in enrichment.inputs]
        number = self.inputs.add(batch)
        # The session's time zone may have changed since the plan was made, or since the rows were carried over
        rows = rows_of(
            inputs,
            number,
            show_values=settings.show_values,
            on_error=settings.on_error,
            nbytes=batch.nbytes,
            zone=enrichment.zone,
        )
        if enrichment.event_time is not None:
            set_event_times(rows, batch.column(enrichment.event_time))
        if enrichment.key:
            set_keys(rows, [batch.column(i) for i in enrichment.key])
        return rows

    def write(self, rows: list[Row]) -> Iterator[pa.RecordBatch]:
        """The enriched rows. With `flatten`, each comes once per output, and none if no row has an output."""
        if self._enrichment.flatten:
            written, results, repeats = self._flattened(rows)
        else:
            written, results, repeats = rows, [self.unwrapped(row.result) for row in rows], 1
        for part, array in self._writer.write(written, results):
            yield from self.with_results(part, array, repeats)
        self.inputs.release(rows)

    def with_results(self, rows: Sequence[Row], results: pa.Array, repeats: int = 1) -> Iterator[pa.RecordBatch]:
        """The input of these rows beside their results, in small batches.

        Args:
            rows: Rows that are not released.
            results: One for each row.
            repeats: The most outputs that one row has.
        """
        start = 0
        for old in self.inputs.take(rows, repeats):
            end = start + old.num_rows
            yield from self.beside(old, rows[start:end], results.slice(start, old.num_rows))
            start = end

    def beside(self, old: pa.RecordBatch, rows: Sequence[Row], results: pa.Array) -> Iterator[pa.RecordBatch]:
        """Input beside its results, in small batches. The extra columns are computed from the rows.

        Args:
            old: Input rows.
            rows: Their rows.
            results: One for each row.
        """
        new = [results] if len(self._enrichment.added) == 1 else results.flatten()
        new += [extra.array(rows) for extra in self._extras]
        added = [pa.field(name, array.type) for name, array in zip(self._new_names, new, strict=True)]
        yield from slices(pa.RecordBatch.from_arrays([*old.columns, *new], schema=pa.schema([*old.schema, *added])))

    def _flattened(self, rows: Sequence[Row]) -> tuple[list[Row], list[Any], int]:
        """A row for each output, the outputs, and the largest number of outputs of one row.

        Each output has a row of its own, because it may fail without its siblings.
        """
        outputs = [self.outputs(row) or self._filler(row) for row in rows]
        copies = [copy(row) for row, of_row in zip(rows, outputs, strict=True) for _ in of_row]
        return copies, [output for of_row in outputs for output in of_row], max(map(len, outputs))

    def _filler(self, row: Row) -> list[None]:
        """One null for a row that failed and, with "outer", for one without outputs."""
        return [None] if row.failure is not None or self._enrichment.flatten == "outer" else []

    def unwrapped(self, result: Any) -> Any:
        """A result, or an output, without the name of the only new column."""
        return result if self._wrapper is None else only_field(result, self._wrapper)

    def outputs(self, row: Row) -> list[Any]:
        """The 0 to n outputs of a row. Its failure is set here if its result is not a list."""
        if row.failure is not None or self.settings.skips(row):
            return []
        try:
            return [self.unwrapped(output) for output in self._listed(row)]
        except Exception as error:
            if self.settings.on_error == "raise":
                raise
            row.fail(error)
            return []

    def _listed(self, row: Row) -> list[Any]:
        result = row.result
        if isinstance(result, Iterable) and not isinstance(result, str | bytes | Mapping):
            return list(result)
        made = "[each async for each in ...]" if isinstance(result, AsyncIterable) else "[value]"
        raise ResultTypeError(
            f"{self.settings.function.name} returned {type(result).__name__} for {row!r}, and with flatten=True a "
            f"result is a list of outputs: return a list, such as {made}"
        )


def _wrapper(added: StructType) -> str | None:
    """The name under which the result for a single new column may come, such as {"temp": 1.5}; None: no name."""
    field = added.fields[0]
    inner = field.dataType.names if isinstance(field.dataType, StructType) else []
    is_ambiguous = isinstance(field.dataType, MapType) or inner == [field.name]
    return None if len(added) > 1 or is_ambiguous else field.name
