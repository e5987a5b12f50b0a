"""Writing: the results of rows as Arrow arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.types import DataType

from trio_asyncio_io.embedding import describe

from .._sent.column_types import arrow_type
from .._sent.row import Failure, Row
from .._sent.settings import Settings
from .converters import NullFieldError, ResultTypeError, converter

__all__ = ["ResultWriter"]


class ResultWriter:
    """Writes results as arrays of the declared type. A result that does not fit fails its row, or the task.

    Args:
        kind: The declared Spark type; a struct for several columns.
        zone: The session's time zone, for naive datetimes.
        settings: The settings of the UDF. `on_error` applies to a result that does not fit, too.
    """

    def __init__(self, kind: DataType, zone: str, settings: Settings) -> None:
        self._kind = kind
        self._arrow_type = arrow_type(kind)
        self._convert = converter(kind, zone)
        self._settings = settings

    def write(self, rows: Sequence[Row], values: Sequence[Any]) -> Iterator[tuple[Sequence[Row], pa.Array]]:
        """The values in order: all rows and one array, or several parts if the values are too large for one array.

        Args:
            rows: The row of each value. Its failure is set here if the value does not fit.
            values: Each is read once, because a generator could not be read again.
        """
        converted = self._converted(rows, values)
        try:
            made = self._array(converted)
        except Exception:  # noqa: BLE001 - `_fitting` finds out which value raised it
            made = self._array(self._fitting(rows, values, converted))
        start = 0
        for array in made.chunks if isinstance(made, pa.ChunkedArray) else [made]:
            yield rows[start : start + len(array)], array
            start += len(array)

    def _array(self, converted: Sequence[Any]) -> pa.Array | pa.ChunkedArray:
        return pa.array(converted, type=self._arrow_type, from_pandas=False)

    def _converted(self, rows: Sequence[Row], values: Sequence[Any]) -> Sequence[Any]:
        convert = self._convert
        if convert is None:
            return values
        converted = []
        for row, value in zip(rows, values, strict=True):
            try:
                converted.append(convert(value))
            except Exception as error:  # noqa: BLE001 - the user's value raised it
                self._refuse(row, value, error)
                converted.append(None)
        return converted

    def _fitting(self, rows: Sequence[Row], values: Sequence[Any], converted: Sequence[Any]) -> list[Any]:
        """The converted values, with None for each that Arrow refuses."""
        fitting: list[Any] = []
        for row, value, each in zip(rows, values, converted, strict=True):
            try:
                self._array([each])
            except Exception as error:  # noqa: BLE001 - as above
                self._refuse(row, value, error)
                fitting.append(None)
            else:
                fitting.append(each)
        return fitting

    def _refuse(self, row: Row, value: Any, error: Exception) -> None:
        """Set the row's failure, or raise it."""
        misfit = self._misfit(row, value, error)
        misfit.__cause__ = error if self._settings.show_values else None  # Arrow's message has the value
        if self._settings.on_error == "raise":
            raise misfit
        row.failure = Failure(misfit, row.attempts, row.seconds)

    def _misfit(self, row: Row, value: Any, error: Exception) -> ResultTypeError:
        show_values = self._settings.show_values
        if isinstance(error, NullFieldError) or (show_values and isinstance(error, ResultTypeError)):
            problem = str(error)
        elif show_values:
            problem = f"returned {type(value).__name__} {describe(value)}, which is not {self._declared()} ({error})"
        else:
            problem = f"returned {type(value).__name__}, which is not {self._declared()}"
        return ResultTypeError(f"{self._settings.function.name} {problem}, for {row!r}")

    def _declared(self) -> str:
        kind = self._kind.simpleString()
        return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"
