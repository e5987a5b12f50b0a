"""Writing: the results of rows as Arrow arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.types import DataType

from trio_asyncio_io.integration import describe

from .._sent.arrow_types import arrow_type
from .._sent.row import Row
from .._sent.settings import Settings
from .._tracebacks import message_of, type_name
from .converters import converter, fitted
from .misfits import MisfitError, NullFieldError, ResultTypeError, advice_for


class ResultWriter:
    """Writes results as arrays of the declared type. A result that does not fit fails its row, or the task.

    Args:
        dtype: The declared Spark type; a struct for several columns.
        zone: The session's time zone, for naive datetimes.
        settings: The settings of the UDF. `on_error` applies to a result that does not fit, too.
        columns: The names of the new columns; empty: the results are those of a column UDF.
    """

    def __init__(self, dtype: DataType, zone: str, settings: Settings, columns: Sequence[str] = ()) -> None:
        self._dtype = dtype
        self._columns = columns
        self._arrow_type = arrow_type(dtype)
        self._convert = converter(dtype, zone)
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
        except Exception:  # noqa: BLE001 - `_without_misfits` finds out which value raised it
            made = self._array(self._without_misfits(rows, values, converted))
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

    def _without_misfits(self, rows: Sequence[Row], values: Sequence[Any], converted: Sequence[Any]) -> list[Any]:
        """The converted values, with None for each that Arrow refuses, and for each missing value inside one."""
        fitting: list[Any] = []
        for row, value, each in zip(rows, values, converted, strict=True):
            found = each
            try:
                self._array([each])
            except Exception:  # noqa: BLE001 - as above
                found = self._fitted_or_none(row, value, each)
            fitting.append(found)
        return fitting

    def _fitted_or_none(self, row: Row, value: Any, converted: Any) -> Any:
        """A converted value that Arrow refuses, as it fits; None if it does not."""
        try:
            found = fitted(self._dtype, converted)
            self._array([found])  # otherwise Arrow would refuse all rows of the chunk
        except Exception as error:  # noqa: BLE001 - as above
            self._refuse(row, value, error)
            return None
        return found

    def _refuse(self, row: Row, value: Any, error: Exception) -> None:
        """Set the row's failure, or raise it."""
        misfit = ResultTypeError(f"{self._settings.function.name} {self._problem(row, value, error)}")
        # The cause matters if an object of the user raised it. Its message may have the value
        has_cause = self._settings.show_values and not isinstance(error, MisfitError)
        misfit.__cause__ = error if has_cause else None
        if self._settings.on_error == "raise":
            raise misfit
        row.fail(misfit)

    def _problem(self, row: Row, value: Any, error: Exception) -> str:
        """What was returned for the row, what is declared, and what to do."""
        dtype, advice = self._dtype, advice_for(self._dtype, value)
        path: tuple[str, ...] = ()
        if isinstance(error, MisfitError):
            dtype, path, value, advice = error.dtype, error.path, error.value, error.advice
        elif self._settings.show_values:
            advice = f"it raised {type_name(error)}: {message_of(error)}"
        if isinstance(error, NullFieldError):
            returned, declared = "None", "NOT NULL"
        else:
            shown = f" {describe(value)}" if self._settings.show_values else ""
            returned, declared = f"{type(value).__name__}{shown}", dtype.simpleString()
        return f"returned {returned} for {row!r}, but {self._place(path)} declared {declared}: {advice}"

    def _place(self, path: tuple[str, ...]) -> str:
        """The declared place of a value, with its verb."""
        full = (*self._columns, *path) if len(self._columns) == 1 else path
        if not full:
            return "the new columns are" if self._columns else "its result is"
        is_column = len(full) == 1 and self._columns
        return f"{'column ' if is_column else ''}{'.'.join(full)!r} is"
