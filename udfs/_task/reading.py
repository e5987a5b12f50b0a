"""Reading: the rows of an Arrow batch, as the operator takes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .._row import Failure, Row

__all__ = ["put_event_times", "put_keys", "rows_of"]

_NAN = object()


def rows_of(
    columns: Sequence[pa.Array],
    batch: int,
    kind: type[Row] = Row,
    *,
    on_error: str = "raise",
    nbytes: int | None = None,
) -> list[Row]:
    """The rows of one Arrow batch.

    Args:
        columns: Its input columns.
        batch: Its number.
        kind: The class of the rows.
        on_error: "raise", or what else happens to a row with a value that Python cannot represent: it has failed.
        nbytes: The size of the Arrow batch with all of its columns; None: that of these columns.

    Raises:
        ValueError: There is such a value, such as a date beyond the year 9999, and `on_error` is "raise".
    """
    size = (sum(column.nbytes for column in columns) if nbytes is None else nbytes) // max(1, len(columns[0]))
    failures: dict[int, ValueError] = {}
    values = [_python_values(column, place, failures) for place, column in enumerate(columns, 1)]
    rows = [kind(inputs, batch, index, size) for index, inputs in enumerate(zip(*values, strict=True))]
    for index, error in failures.items():
        if on_error == "raise":
            error.add_note(repr(rows[index]))
            raise error
        rows[index].failure = Failure(error, 0, 0.0)
    return rows


def put_event_times(rows: Sequence[Row], column: pa.Array) -> None:
    """Give the rows of one batch their event times: microseconds, so that no time zone's arithmetic is in the way."""
    times = pc.cast(column, pa.timestamp("us", tz=column.type.tz)).cast(pa.int64()).to_pylist()
    for row, time in zip(rows, times, strict=True):
        row.event_time = time


def put_keys(rows: Sequence[Row], columns: Sequence[pa.Array]) -> None:
    """Give the rows of one batch their keys. As in Spark's own grouping, one NaN equals another."""
    for row, key in zip(rows, zip(*map(_key_values, columns), strict=True), strict=True):
        row.key = tuple(_NAN if value != value else value for value in key)  # noqa: PLR0124 - what makes a NaN


def _key_values(column: pa.Array) -> list[Any]:
    """Values that are equal where those of the column are; times as numbers, for Python's years end at 9999."""
    if pa.types.is_temporal(column.type):
        column = column.view(pa.int32() if column.type.bit_width == 32 else pa.int64())  # noqa: PLR2004 - bits
    values: list[Any] = column.to_pylist()
    return values


def _python_values(column: pa.Array, place: int, failures: dict[int, ValueError]) -> list[Any]:
    """The values of a column; None where there is no such value in Python, and then a failure of that row."""
    options: dict[str, Any] = {"maps_as_pydicts": "strict"} if _has_map(column.type) else {}
    values: list[Any] = []
    try:
        values = column.to_pylist(**options)
    except Exception:  # noqa: BLE001 - which of them it was is found out here
        for index, value in enumerate(column):
            try:
                values.append(value.as_py(**options))
            except Exception as error:  # noqa: BLE001 - of Arrow or of datetime, as the type may be
                what = f"the value of input {place}, {column.type}, has no equal in Python: {error}"
                failures.setdefault(index, ValueError(what))
                values.append(None)
    return values


def _has_map(kind: pa.DataType) -> bool:
    return pa.types.is_map(kind) or any(_has_map(kind.field(i).type) for i in range(kind.num_fields))
