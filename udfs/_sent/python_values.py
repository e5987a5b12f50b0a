"""The Python values of an Arrow array."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

__all__ = ["to_pylist"]

# New in pyarrow 20
CONVERTS_MAPS = int(pa.__version__.partition(".")[0]) >= 20  # noqa: PLR2004


def to_pylist(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The values, with maps as dicts."""
    values: list[Any]
    if not _has_map(column.type):
        values = column.to_pylist()
    elif CONVERTS_MAPS:
        values = column.to_pylist(maps_as_pydicts="strict")
    else:
        values = [_with_dicts(value, column.type) for value in column.to_pylist()]
    return values


def _with_dicts(value: Any, kind: pa.DataType) -> Any:
    """The value with a dict in place of each list of pairs."""
    if value is None or not _has_map(kind):
        return value
    if pa.types.is_map(kind):
        pairs = [(_with_dicts(key, kind.key_type), _with_dicts(item, kind.item_type)) for key, item in value]
        if len(dict(pairs)) < len(pairs):
            raise ValueError("a map has a key twice")
        return dict(pairs)
    if pa.types.is_struct(kind):
        return {name: _with_dicts(each, kind.field(name).type) for name, each in value.items()}
    return [_with_dicts(each, kind.value_type) for each in value]


def _has_map(kind: pa.DataType) -> bool:
    return pa.types.is_map(kind) or any(_has_map(kind.field(i).type) for i in range(kind.num_fields))
