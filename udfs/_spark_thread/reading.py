"""Reading: the columns of an Arrow batch as rows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .._sent.arrow_types import to_pylist
from .._sent.row import Failure, Row
from .._sent.zone import portable_zone

_NAN = object()


def rows_of(
    columns: Sequence[pa.Array],
    batch: int,
    *,
    show_values: bool = True,
    on_error: str = "raise",
    nbytes: int | None = None,
    zone: str | None = None,
) -> list[Row]:
    """The rows of one Arrow batch.

    Args:
        columns: Its input columns.
        batch: Its number.
        show_values: Whether errors and logs may show the values of the rows.
        on_error: "raise" to raise an error for a value that Python cannot represent, such as a date after the year
            9999. Otherwise, its row fails.
        nbytes: The size of the Arrow batch with all of its columns; None: the size of these columns.
        zone: The time zone of the datetimes; None: each column's own.

    Raises:
        ValueError: Python cannot represent a value, and `on_error` is "raise".
    """
    size = (sum(column.nbytes for column in columns) if nbytes is None else nbytes) // max(1, len(columns[0]))
    values, failures = values_of(columns, zone)
    rows = [Row(inputs, batch, index, size, show_values) for index, inputs in enumerate(values)]
    for index, (problem, detail) in failures.items():
        error = ValueError(f"{problem}: {detail}" if show_values else problem)
        if on_error == "raise":
            error.add_note(repr(rows[index]))
            raise error
        rows[index].failure = Failure(error, 0, 0.0)
    return rows


def values_of(
    columns: Sequence[pa.Array], zone: str | None
) -> tuple[Iterator[tuple[Any, ...]], Mapping[int, tuple[str, str]]]:
    """The input values of each row; and by its index, why a row has one that Python cannot represent.

    Args:
        columns, zone: As in `rows_of`.
    """
    failures: dict[int, tuple[str, str]] = {}
    values = [_python_values(column, number, failures, zone) for number, column in enumerate(columns, 1)]
    return zip(*values, strict=True), failures


def set_event_times(rows: Sequence[Row], column: pa.Array) -> None:
    """Set the event time of the rows of one batch, in microseconds. Time zones do not matter to these."""
    times = pc.cast(column, pa.timestamp("us", tz=column.type.tz)).cast(pa.int64()).to_pylist()
    for row, time in zip(rows, times, strict=True):
        row.event_time = time


def set_keys(rows: Sequence[Row], columns: Sequence[pa.Array]) -> None:
    """Set the key of the rows of one batch. As in Spark's own grouping, all NaN are equal."""
    for row, key in zip(rows, zip(*map(_key_values, columns), strict=True), strict=True):
        row.key = tuple(_NAN if value != value else value for value in key)  # noqa: PLR0124 - a test for NaN


def _key_values(column: pa.Array) -> list[Any]:
    """The values of a key column. Times are numbers, because Python's years end at 9999."""
    if pa.types.is_temporal(column.type):
        column = column.view(pa.int32() if column.type.bit_width == 32 else pa.int64())  # noqa: PLR2004 - bits
    values: list[Any] = column.to_pylist()
    return values


def _python_values(column: pa.Array, number: int, failures: dict[int, tuple[str, str]], zone: str | None) -> list[Any]:
    """The values of an input column. Where Python cannot represent one, it is None, and its row is in `failures`."""
    if (dtype := _portable(column.type, zone)) != column.type:
        column = column.cast(dtype)
    try:
        return to_pylist(column)
    except Exception:  # noqa: BLE001 - the loop finds out which value raised it
        values: list[Any] = []
        for index in range(len(column)):
            try:
                values += to_pylist(column.slice(index, 1))
            except Exception as error:  # noqa: BLE001 - from Arrow or datetime, depending on the type
                problem = f"the value of input {number}, {column.type}, cannot be represented in Python"
                failures.setdefault(index, (problem, str(error)))
                values.append(None)
        return values


@cache
def _portable(dtype: pa.DataType, zone: str | None) -> pa.DataType:
    """The type with time zones that Arrow can name. A rebuilt type has nullable fields."""
    if all(each == portable_zone(zone or each) for each in re.findall(r"tz=([^]]*)", str(dtype))):
        return dtype
    if pa.types.is_timestamp(dtype):
        return pa.timestamp(dtype.unit, tz=portable_zone(zone or dtype.tz))
    if pa.types.is_map(dtype):
        return pa.map_(_portable(dtype.key_type, zone), _portable(dtype.item_type, zone))
    if pa.types.is_struct(dtype):
        return pa.struct([pa.field(each.name, _portable(each.type, zone), metadata=each.metadata) for each in dtype])
    values = _portable(dtype.value_type, zone)
    return pa.large_list(values) if pa.types.is_large_list(dtype) else pa.list_(values)
