"""Spark types in Spark's plan and in Arrow, and the Python values of Arrow arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.types import ArrayType, CharType, DataType, MapType, StringType, StructField, StructType, VarcharType

from .._spark_version import VariantVal, arrow_type_in_utc

# New in pyarrow 20
CONVERTS_MAPS = int(pa.__version__.partition(".")[0]) >= 20  # noqa: PLR2004


def struct_type(**fields: DataType | str) -> StructType:
    """A struct with these nullable fields. A type without parameters may be given by name, such as "double"."""
    dtype = StructType()
    for name, of_field in fields.items():
        dtype.add(name, of_field)
    return dtype


def parts_of(dtype: DataType) -> Iterator[DataType]:
    """The type, and all types inside it."""
    yield dtype
    inner = [each.dataType for each in dtype.fields] if isinstance(dtype, StructType) else []
    if isinstance(dtype, ArrayType):
        inner = [dtype.elementType]
    elif isinstance(dtype, MapType):
        inner = [dtype.keyType, dtype.valueType]
    for each in inner:
        yield from parts_of(each)


def plan_type(dtype: DataType) -> DataType:
    """The type in Spark's plan, where char and varchar are strings at any depth, as in Spark's own DataFrames."""
    if isinstance(dtype, CharType | VarcharType):
        return StringType()
    if isinstance(dtype, ArrayType):
        return ArrayType(plan_type(dtype.elementType), dtype.containsNull)
    if isinstance(dtype, MapType):
        return MapType(plan_type(dtype.keyType), plan_type(dtype.valueType), dtype.valueContainsNull)
    if isinstance(dtype, StructType):
        return StructType(plan_fields(dtype))
    return dtype


def plan_fields(dtype: StructType) -> list[StructField]:
    """The fields, or columns, with their types in Spark's plan."""
    return [StructField(each.name, plan_type(each.dataType), each.nullable, each.metadata) for each in dtype.fields]


def arrow_type(dtype: DataType) -> pa.DataType:
    """The Arrow type of a Spark type. Timestamps are in UTC."""
    return arrow_type_in_utc(plan_type(dtype))


def to_pylist(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The values, with maps as dicts, and variants as the values that JSON has."""
    values: list[Any]
    has_map, has_variant = _has(pa.types.is_map, column.type), _has(_is_variant, column.type)
    if has_variant or (has_map and not CONVERTS_MAPS):
        values = [_converted(value, column.type) for value in column.to_pylist()]
    elif has_map:
        values = column.to_pylist(maps_as_pydicts="strict")
    else:
        values = column.to_pylist()
    return values


def _converted(value: Any, dtype: pa.DataType) -> Any:
    """The value with a dict in place of each list of pairs, and a value in place of each variant."""
    if value is None or not (_has(pa.types.is_map, dtype) or _has(_is_variant, dtype)):
        return value
    if _is_variant(dtype):
        return VariantVal(value["value"], value["metadata"]).toPython()
    if pa.types.is_map(dtype):
        pairs = [(_converted(key, dtype.key_type), _converted(item, dtype.item_type)) for key, item in value]
        if len(dict(pairs)) < len(pairs):
            raise ValueError("a map has a key twice")
        return dict(pairs)
    if pa.types.is_struct(dtype):
        return {name: _converted(each, dtype.field(name).type) for name, each in value.items()}
    return [_converted(each, dtype.value_type) for each in value]


def _has(matches: Callable[[pa.DataType], bool], dtype: pa.DataType) -> bool:
    """Whether this holds for the type or for one inside it."""
    return matches(dtype) or any(_has(matches, dtype.field(i).type) for i in range(dtype.num_fields))


def _is_variant(dtype: pa.DataType) -> bool:
    """Whether this is Spark's form of a variant: a struct of two binary fields, the second of which is marked."""
    if not pa.types.is_struct(dtype) or dtype.num_fields != 2:  # noqa: PLR2004 - see above
        return False
    return (dtype.field(1).metadata or {}).get(b"variant") == b"true"
