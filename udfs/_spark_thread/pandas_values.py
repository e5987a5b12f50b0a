"""pandas values: arrays as pandas objects and back, for the values that pandas leaves unchanged."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa
import pyspark

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["array_from_pandas", "array_to_pandas"]

# Their exact types: a `pd.Timestamp` is a `date`, and may have been a null
UNCHANGED = frozenset({type(None), bool, bytes, date, Decimal, int, str})

AS_OBJECTS: tuple[Callable[[pa.DataType], bool], ...] = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_decimal,
    pa.types.is_date32,
)


def array_from_pandas(column: Any, name: str) -> pa.Array:
    """The values of an input column.

    Args:
        column: A `Series` or, for structs, a `DataFrame`.
        name: The name of the function, for error messages.

    Raises:
        RuntimeError: They may not be the values that Spark has.
    """
    kind = getattr(getattr(column, "dtype", None), "kind", "")
    if kind == "O":
        return _from_objects(column.tolist(), name)
    if kind == "f" and column.isna().any():
        _refuse(name, "a number that may be null or NaN")
    if kind not in {"b", "f", "i", "u"}:
        _refuse(name, f"a value of type {column.dtype}" if kind else "a struct")
    return pa.array(column)


def array_to_pandas(array: pa.Array, name: str) -> pd.Series[Any]:
    """A `Series` that a pandas UDF can use, and that PySpark converts to exactly this array.

    Args:
        array: The results.
        name: The name of the function, for error messages.

    Raises:
        RuntimeError: pandas would alter values of this type.
    """
    import pandas as pd  # noqa: PLC0415 - only needed here, with old versions of Spark

    if any(each(array.type) for each in AS_OBJECTS):
        return pd.Series(array.to_pylist(), dtype=object)
    if not (pa.types.is_primitive(array.type) and not pa.types.is_temporal(array.type)):
        _refuse(name, f"a result of type {array.type}")
    has_nan = pa.types.is_floating(array.type) and any(map(math.isnan, array.drop_null().to_pylist()))
    if array.null_count or has_nan:
        return pd.Series(array.to_pandas(types_mapper=_nullable(pd).get))
    return pd.Series(array.to_pandas())


def _from_objects(values: list[Any], name: str) -> pa.Array:
    values = [bytes(value) if type(value) is bytearray else value for value in values]
    for value in values:
        if type(value) not in UNCHANGED:
            _refuse(name, f"a {type(value).__name__}")
    return pa.array(values, from_pandas=False)


def _nullable(pd: Any) -> dict[pa.DataType, Any]:
    """Types of pandas that tell null from NaN, and have integers with nulls."""
    return {
        pa.bool_(): pd.BooleanDtype(),
        pa.int8(): pd.Int8Dtype(),
        pa.int16(): pd.Int16Dtype(),
        pa.int32(): pd.Int32Dtype(),
        pa.int64(): pd.Int64Dtype(),
        pa.float32(): pd.Float32Dtype(),
        pa.float64(): pd.Float64Dtype(),
    }


def _refuse(name: str, what: str) -> NoReturn:
    raise RuntimeError(
        f"{name} cannot exchange {what} with Spark {pyspark.__version__} or with another pandas UDF, because pandas "
        "might alter it: use ordered_wait, or Spark 4.1 or newer"
    )
