"""The output: Arrow arrays of what came of the rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DoubleType,
    IntegerType,
    StringType,
    StructField,
    StructType,
)

from .._row import Failure, Row
from .._settings import ErrorMode, Settings
from .._text import shown, type_name
from .converters import Convert, NullFieldError, ResultTypeError, arrow_type, converter

__all__ = [
    "ERROR_TYPE",
    "METADATA_TYPE",
    "METRICS_COLUMN",
    "Extra",
    "Output",
    "error_array",
    "extras_of",
    "metadata_array",
]

ERROR_TYPE = StructType(
    [
        StructField("type", StringType()),
        StructField("message", StringType()),
        StructField("attempts", IntegerType()),
        StructField("seconds", DoubleType()),
    ]
)
METADATA_TYPE = StructType(
    [
        StructField("attempts", IntegerType()),
        StructField("seconds", DoubleType()),
        StructField("cached", BooleanType()),
        StructField("error", StringType()),
    ]
)
ERROR_COLUMN = "error"
METRICS_COLUMN = "__udfs_metrics"


@dataclass(frozen=True, slots=True)
class Extra:
    """A column beside the results, made of what is known of the rows.

    Attributes:
        name: Its name.
        kind: Its Spark type.
        array: rows -> its values.
    """

    name: str
    kind: DataType
    array: Callable[[Sequence[Row]], pa.Array]


class Output:
    """Makes arrays of one declared type, and says which row does not fit.

    Args:
        kind: The declared Spark type; a struct for several columns.
        zone: The session's time zone, for naive datetimes.
        on_error: What becomes of a row whose result does not fit: as for a row that failed.
        name: What errors call the function.
        show_values: Whether errors may show what it returned.
    """

    def __init__(self, kind: DataType, *, zone: str, on_error: ErrorMode, name: str, show_values: bool = True) -> None:
        self._kind = kind
        self._arrow = arrow_type(kind)
        self._convert: Convert | None = converter(kind, zone)
        self._on_error = on_error
        self._name = name
        self._show_values = show_values

    def arrays(self, rows: Sequence[Row], values: Sequence[Any]) -> list[pa.Array]:
        """The values in order, as one array, or as several where one cannot hold their bytes.

        Each value belongs to the row at the same place, whose failure may be set here. It is read once: a generator
        could not be read again.
        """
        converted = self._converted(rows, values)
        try:
            made = self._made(converted)
        except Exception:  # noqa: BLE001 - which of them it was is found out below
            made = self._made(self._fitting(rows, values, converted))
        return made.chunks if isinstance(made, pa.ChunkedArray) else [made]

    def _made(self, converted: Sequence[Any]) -> pa.Array | pa.ChunkedArray:
        return pa.array(converted, type=self._arrow, from_pandas=False)

    def _converted(self, rows: Sequence[Row], values: Sequence[Any]) -> Sequence[Any]:
        convert = self._convert
        if convert is None:
            return values
        converted = []
        for row, value in zip(rows, values, strict=True):
            try:
                converted.append(convert(value))
            except Exception as error:  # noqa: BLE001 - it is the user's value that raised it
                self._refuse(row, value, error)
                converted.append(None)
        return converted

    def _fitting(self, rows: Sequence[Row], values: Sequence[Any], converted: Sequence[Any]) -> list[Any]:
        """The converted values, with None for each that Arrow does not take."""
        fitting: list[Any] = []
        for row, value, each in zip(rows, values, converted, strict=True):
            try:
                self._made([each])
            except Exception as error:  # noqa: BLE001 - as above
                self._refuse(row, value, error)
                fitting.append(None)
            else:
                fitting.append(each)
        return fitting

    def _refuse(self, row: Row, value: Any, error: Exception) -> None:
        """Set the row's failure, or raise it."""
        misfit = self._misfit(row, value, error)
        if self._on_error == "raise":
            raise misfit from error
        row.failure = Failure(misfit, row.attempts, row.seconds)

    def _misfit(self, row: Row, value: Any, error: Exception) -> ResultTypeError:
        kind = self._kind.simpleString()
        if isinstance(error, NullFieldError) or (self._show_values and isinstance(error, ResultTypeError)):
            what = str(error)
        elif not self._show_values:
            what = f"returned {type(value).__name__}, which is no {kind}"
        else:
            what = f"returned {type(value).__name__} {shown(value)}, which is no {kind} ({error})"
        return ResultTypeError(f"{self._name} {what}, for {row!r}")


def error_array(rows: Sequence[Row]) -> pa.Array:
    """The `error` column: null where all went well."""
    return pa.array(
        [None if row.failure is None else row.failure.as_struct() for row in rows], type=arrow_type(ERROR_TYPE)
    )


def metadata_array(rows: Sequence[Row]) -> pa.Array:
    """The metadata column. An `error` is the name of the exception's class, and null where all went well."""
    return pa.array([_metadata_of(row) for row in rows], type=arrow_type(METADATA_TYPE))


def metrics_array(rows: Sequence[Row]) -> pa.Array:
    """The same, for sums: each row is told of once, with the first of its outputs."""
    places = [None, *((row.batch, row.index) for row in rows)]
    told = [
        None if (row.batch, row.index) == before else _metadata_of(row)
        for before, row in zip(places, rows, strict=False)
    ]
    return pa.array(told, type=arrow_type(METADATA_TYPE))


def extras_of(settings: Settings) -> list[Extra]:
    """The columns that stand behind the results."""
    extras = []
    if settings.on_error == "column":
        extras.append(Extra(ERROR_COLUMN, ERROR_TYPE, error_array))
    if settings.metadata is not None:
        extras.append(Extra(settings.metadata, METADATA_TYPE, metadata_array))
    if settings.has_metrics:
        extras.append(Extra(METRICS_COLUMN, METADATA_TYPE, metrics_array))
    return extras


def _metadata_of(row: Row) -> dict[str, Any]:
    failure = row.failure
    return {
        "attempts": row.attempts,
        "seconds": row.seconds if failure is None else failure.seconds,
        "cached": row.cached,
        "error": None if failure is None else type_name(failure.exception),
    }
