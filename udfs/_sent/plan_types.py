"""Plan types: the types of Spark's plan and of Arrow for the types that the user declared."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    CharType,
    DataType,
    MapType,
    StringType,
    StructField,
    StructType,
    VarcharType,
)

from .._spark_version import arrow_type_in_utc

__all__ = ["arrow_type", "plan_fields", "plan_type"]


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
