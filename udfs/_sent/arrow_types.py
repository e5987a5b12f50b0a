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
    kind = StructType()
    for name, of_field in fields.items():
        kind.add(name, of_field)
    return kind


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


def _converted(value: Any, kind: pa.DataType) -> Any:
    """The value with a dict in place of each list of pairs, and a value in place of each variant."""
    if value is None or not (_has(pa.types.is_map, kind) or _has(_is_variant, kind)):
        return value
    if _is_variant(kind):
        return VariantVal(value["value"], value["metadata"]).toPython()
    if pa.types.is_map(kind):
        pairs = [(_converted(key, kind.key_type), _converted(item, kind.item_type)) for key, item in value]
        if len(dict(pairs)) < len(pairs):
            raise ValueError("a map has a key twice")
        return dict(pairs)
    if pa.types.is_struct(kind):
        return {name: _converted(each, kind.field(name).type) for name, each in value.items()}
    return [_converted(each, kind.value_type) for each in value]


def _has(is_kind: Callable[[pa.DataType], bool], kind: pa.DataType) -> bool:
    """Whether the type or one inside it is of this kind."""
    return is_kind(kind) or any(_has(is_kind, kind.field(i).type) for i in range(kind.num_fields))


def _is_variant(kind: pa.DataType) -> bool:
    """Whether this is Spark's form of a variant: a struct of two binary fields, the second of which is marked."""
    if not pa.types.is_struct(kind) or kind.num_fields != 2:  # noqa: PLR2004 - see above
        return False
    return (kind.field(1).metadata or {}).get(b"variant") == b"true"
