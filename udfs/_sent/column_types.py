"""Columns: the types of new columns in Spark and in Arrow, and the extra columns that report on the calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.types import ArrayType, CharType, DataType, MapType, StringType, StructField, StructType, VarcharType

from .._spark_version import arrow_type_in_utc
from .._tracebacks import type_name
from .metrics import METRICS_COLUMN, METRICS_TYPE, MetricsColumn
from .row import Row
from .settings import Settings


def struct_type(**fields: DataType | str) -> StructType:
    """A struct with these nullable fields. A type without parameters may be given by name, such as "double"."""
    kind = StructType()
    for name, of_field in fields.items():
        kind.add(name, of_field)
    return kind


ERROR_TYPE = struct_type(type="string", message="string", attempts="integer", seconds="double")
METADATA_TYPE = struct_type(
    attempts="integer",
    seconds="double",
    cached="boolean",
    error="string",
    estimated_weight="double",
    settled_weight="double",
)


def parts_of(kind: DataType) -> Iterator[DataType]:
    """The type, and all types inside it."""
    yield kind
    inner = [each.dataType for each in kind.fields] if isinstance(kind, StructType) else []
    if isinstance(kind, ArrayType):
        inner = [kind.elementType]
    elif isinstance(kind, MapType):
        inner = [kind.keyType, kind.valueType]
    for each in inner:
        yield from parts_of(each)


def plan_type(kind: DataType) -> DataType:
    """The type in Spark's plan, where char and varchar are strings at any depth, as in Spark's own DataFrames."""
    if isinstance(kind, CharType | VarcharType):
        return StringType()
    if isinstance(kind, ArrayType):
        return ArrayType(plan_type(kind.elementType), kind.containsNull)
    if isinstance(kind, MapType):
        return MapType(plan_type(kind.keyType), plan_type(kind.valueType), kind.valueContainsNull)
    if isinstance(kind, StructType):
        return StructType(plan_fields(kind))
    return kind


def plan_fields(kind: StructType) -> list[StructField]:
    """The fields, or columns, with their types in Spark's plan."""
    return [StructField(each.name, plan_type(each.dataType), each.nullable, each.metadata) for each in kind.fields]


def arrow_type(kind: DataType) -> pa.DataType:
    """The Arrow type of a Spark type. Timestamps are in UTC."""
    return arrow_type_in_utc(plan_type(kind))


# Created once: a chunk may have only a few rows
ERROR_ARROW_TYPE = arrow_type(ERROR_TYPE)
METADATA_ARROW_TYPE = arrow_type(METADATA_TYPE)


@dataclass(frozen=True, slots=True)
class ExtraColumn:
    """A column behind the results.

    Attributes:
        name: Its name.
        kind: Its Spark type.
        array: rows -> its values.
        option: The keyword argument that names it; "": the user does not name it.
    """

    name: str
    kind: DataType
    array: Callable[[Sequence[Row]], pa.Array]
    option: str = ""


def extra_columns(settings: Settings) -> list[ExtraColumn]:
    """The extra columns of a UDF with these settings, in their order behind the results."""
    extras = []
    if settings.on_error == "column":
        extras.append(ExtraColumn(settings.error, ERROR_TYPE, error_array, "error"))
    if settings.metadata is not None:
        extras.append(ExtraColumn(settings.metadata, METADATA_TYPE, metadata_array, "metadata"))
    if settings.has_metrics:
        extras.append(ExtraColumn(METRICS_COLUMN, METRICS_TYPE, MetricsColumn().array))
    return extras


def error_array(rows: Sequence[Row]) -> pa.Array:
    """The column of errors; null for a row that did not fail."""
    errors = [None if row.failure is None else row.failure.as_struct() for row in rows]
    return pa.array(errors, type=ERROR_ARROW_TYPE)


def metadata_array(rows: Sequence[Row]) -> pa.Array:
    """The metadata column. Its `error` is the name of the exception's class; null for a row that did not fail."""
    values = (  # of each field: Arrow takes several times as long to read a dict for each row
        [row.attempts for row in rows],
        [row.seconds if row.failure is None else row.failure.seconds for row in rows],
        [row.cached for row in rows],
        [None if row.failure is None else type_name(row.failure.exception) for row in rows],
        [row.weights and row.weights[0] for row in rows],
        [row.weights and row.weights[1] for row in rows],
    )
    arrays = [pa.array(each, type=field.type) for each, field in zip(values, METADATA_ARROW_TYPE, strict=True)]
    return pa.StructArray.from_arrays(arrays, fields=list(METADATA_ARROW_TYPE))
