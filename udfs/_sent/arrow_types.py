"""Spark types in Spark's plan and in Arrow, and the Python values of Arrow arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql.types import ArrayType, CharType, DataType, MapType, StringType, StructField, StructType, VarcharType

from .._spark_version import VariantVal, arrow_type_in_utc

Convert = Callable[[Any], Any]


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
    convert = _conversion(column.type)
    values: list[Any] = column.to_pylist()
    return values if convert is None else [convert(value) for value in values]


def _conversion(dtype: pa.DataType) -> Convert | None:
    """The conversion of a value that Arrow returns; None if it needs none.

    Arrow's own one for maps, `maps_as_pydicts`, takes several times as long.
    """
    if _is_variant(dtype):
        return lambda value: value and VariantVal(value["value"], value["metadata"]).toPython()
    if pa.types.is_map(dtype):
        return _to_dict(_conversion(dtype.key_type) or unchanged, _conversion(dtype.item_type) or unchanged)
    if pa.types.is_struct(dtype):
        inner = {each.name: convert for each in dtype if (convert := _conversion(each.type)) is not None}
        return _with_fields(inner) if inner else None
    is_list = pa.types.is_nested(dtype) and hasattr(dtype, "value_type")  # of any length and layout
    each = _conversion(dtype.value_type) if is_list else None
    return each and (lambda values: values and [each(value) for value in values])


def _to_dict(key: Convert, item: Convert) -> Convert:
    def convert(pairs: Any) -> Any:
        if pairs is None:
            return None
        found = {key(each): item(value) for each, value in pairs}
        if len(found) < len(pairs):
            raise ValueError("a map has a key twice")
        return found

    return convert


def _with_fields(inner: Mapping[str, Convert]) -> Convert:
    return lambda value: value and {**value, **{name: convert(value[name]) for name, convert in inner.items()}}


def unchanged(value: Any) -> Any:
    """The value itself."""
    return value


def _is_variant(dtype: pa.DataType) -> bool:
    """Whether this is Spark's form of a variant: a struct of two binary fields, the second of which is marked."""
    if not pa.types.is_struct(dtype) or dtype.num_fields != 2:  # noqa: PLR2004 - see above
        return False
    return (dtype.field(1).metadata or {}).get(b"variant") == b"true"
