"""The column UDF inside a task: arrays in, one array of results out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

import pyarrow as pa
from pyspark.sql.types import DataType

from .._sent.extra_columns import extra_columns
from .._sent.row import Row
from .._sent.settings import Settings
from .conversion import Conversion
from .reading import rows_of
from .slices import slices
from .writing import ResultWriter

__all__ = ["ColumnConversion"]


class ColumnConversion(Conversion["pa.Array | tuple[pa.Array, ...]", pa.Array]):
    """Converts the columns that the function is called with, and its results.

    Args:
        settings: The settings of the UDF.
        kind: The declared type of a result.
        zone: The time zone of the query.
    """

    def __init__(self, settings: Settings, kind: DataType, zone: str) -> None:
        super().__init__(settings)
        self._numbers = count()
        self._writer = ResultWriter(kind, zone, settings)
        self._extras = extra_columns(settings)

    def read(self, batch: pa.Array | tuple[pa.Array, ...]) -> list[Row]:
        """The rows of one batch, which Spark passes as an array or, for several columns, a tuple of arrays."""
        columns = batch if isinstance(batch, tuple) else (batch,)
        settings = self.settings
        return rows_of(columns, next(self._numbers), settings.row_type, on_error=settings.on_error)

    def write(self, rows: list[Row]) -> Iterator[pa.Array]:
        """The results, in the order of the rows."""
        for part, results in self._writer.write(rows, [row.result for row in rows]):
            yield from slices(self._with_extras(results, part))

    def _with_extras(self, results: pa.Array, rows: Sequence[Row]) -> pa.Array:
        if not self._extras:
            return results
        arrays = [results, *(extra.array(rows) for extra in self._extras)]
        return pa.StructArray.from_arrays(arrays, names=["result", *(extra.name for extra in self._extras)])
