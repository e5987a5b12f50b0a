"""The output: Arrow arrays of what came of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.types import DataType, DoubleType, IntegerType, StringType, StructField, StructType

from ._results import Convert, ResultTypeError, arrow_type, converter, to_array
from ._rows import Failure, Row, shown
from ._settings import ErrorMode

__all__ = ["ERROR_TYPE", "Output", "error_array"]

ERROR_TYPE = StructType(
    [
        StructField("type", StringType()),
        StructField("message", StringType()),
        StructField("attempts", IntegerType()),
        StructField("seconds", DoubleType()),
    ]
)


class Output:
    """Makes arrays of one declared type, and says which row does not fit.

    Args:
        kind: The declared Spark type; a struct for several columns.
        zone: The session's time zone, for naive datetimes.
        on_error: What becomes of a row whose result does not fit: as for a row that failed.
        name: What errors call the function.
    """

    def __init__(self, kind: DataType, *, zone: str, on_error: ErrorMode, name: str) -> None:
        self._kind = kind
        self._arrow = arrow_type(kind)
        self._convert: Convert | None = converter(kind, zone)
        self._on_error = on_error
        self._name = name

    def array(self, rows: Sequence[Row], values: Sequence[Any]) -> pa.Array:
        """An array of the values; each belongs to the row at the same place, whose failure may be set here."""
        try:
            return to_array(values, self._convert, self._arrow)
        except Exception:  # noqa: BLE001 - which of them it was is found out below
            return to_array(self._fitting(rows, values), self._convert, self._arrow)

    def _fitting(self, rows: Sequence[Row], values: Sequence[Any]) -> list[Any]:
        fitting: list[Any] = []
        for row, value in zip(rows, values, strict=True):
            try:
                to_array([value], self._convert, self._arrow)
            except Exception as error:
                misfit = self._misfit(row, value, error)
                if self._on_error == "raise":
                    raise misfit from error
                row.failure = Failure(misfit, row.attempts, row.seconds)
                fitting.append(None)
            else:
                fitting.append(value)
        return fitting

    def _misfit(self, row: Row, value: Any, error: Exception) -> ResultTypeError:
        if isinstance(error, ResultTypeError):
            what = str(error)
        else:
            kind = self._kind.simpleString()
            what = f"returned {type(value).__name__} {shown(value)}, which is no {kind} ({error})"
        return ResultTypeError(f"{self._name} {what}, for {row!r}")


def error_array(rows: Sequence[Row]) -> pa.Array:
    """The `error` column: null where all went well."""
    return pa.array(
        [None if row.failure is None else row.failure.as_struct() for row in rows], type=arrow_type(ERROR_TYPE)
    )
