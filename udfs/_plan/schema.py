"""The schema: types and columns, checked when the plan is built."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
)

__all__ = [
    "check_columns",
    "event_time_column",
    "key_column",
    "lookup_names",
    "microseconds",
    "new_columns",
    "parse_type",
    "position_of",
]

UNITS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}


def parse_type(declared: DataType | str) -> DataType:
    """The Spark type that a DDL string names, or the type itself.

    Raises:
        TypeError: It is neither.
        pyspark.errors.ParseException: The string is no DDL.
    """
    if isinstance(declared, DataType):
        return declared
    if not isinstance(declared, str):
        raise TypeError(f"the type must be a DDL string or a Spark type, got {declared!r}")
    return DataType.fromDDL(declared)


def new_columns(declared: DataType | str) -> StructType:
    """The columns that a schema adds. They are nullable, whatever the schema says: a row may fail, or return None.

    Raises:
        TypeError: It names no columns.
    """
    kind = parse_type(declared)
    if not isinstance(kind, StructType) or not kind.fields:
        raise TypeError(f'the schema must name the new columns, such as "temp double, wind double"; got {declared!r}')
    return StructType([StructField(each.name, each.dataType, nullable=True, metadata=each.metadata) for each in kind])


def check_columns(existing: Sequence[str], added: Sequence[str], inputs: Sequence[str], *, case: bool) -> None:
    """Check that inputs exist once, and new columns not yet.

    Args:
        existing, added, inputs: Names of columns.
        case: Whether the session tells upper from lower case.

    Raises:
        ValueError: The message names the column, and those that there are.
    """
    fold = str if case else str.lower
    known = [fold(name) for name in existing]
    for name in inputs:
        if fold(name) not in known:
            raise ValueError(f"there is no column {name!r}; there are {', '.join(existing)}")
    for name in inputs:
        if known.count(fold(name)) > 1:
            raise ValueError(f"there are several columns {name!r}: rename them first")
    for name in added:
        if fold(name) in known:
            raise ValueError(f"there is a column {name!r} already: give the new one another name, or drop the old one")
    if len({fold(name) for name in added}) < len(added):
        raise ValueError(f"the schema names a column twice: {', '.join(added)}")


def position_of(name: str, existing: Iterable[str], *, case: bool) -> int:
    """Where the column stands; it must be there."""
    fold = str if case else str.lower
    return [fold(each) for each in existing].index(fold(name))


def lookup_names(existing: Sequence[str], reserved: str) -> list[str]:
    """Names for the same columns that Spark can look up: their own, or their places if one of them cannot be.

    `mapInArrow` looks each column up by name, and takes a dot for a field, a backtick for a quote and "*" for all
    columns; of names that differ in case only it finds several.

    Args:
        existing: The names of the columns.
        reserved: A name that none of them may have.
    """
    is_plain = all(re.fullmatch(r"\w+", name) for name in existing)
    folded = {name.lower() for name in [*existing, reserved]}
    return list(existing) if is_plain and len(folded) > len(existing) else [f"_{n}" for n in range(len(existing))]


def event_time_column(name: str, schema: StructType, position: int) -> None:
    """Check that the column can be an event time.

    Raises:
        TypeError: It is no timestamp.
    """
    kind = schema.fields[position].dataType
    if not isinstance(kind, TimestampType | TimestampNTZType):
        raise TypeError(f"event_time must be a timestamp column, and {name!r} is {kind.simpleString()}: cast it first")


def key_column(name: str, schema: StructType, position: int) -> None:
    """Check that the column can be a key.

    Raises:
        TypeError: Its values cannot be told apart by equality.
    """
    kind = schema.fields[position].dataType
    if isinstance(kind, ArrayType | MapType | StructType | VariantType):
        raise TypeError(f"key must be columns of plain values, and {name!r} is {kind.simpleString()}: name its fields")


def microseconds(interval: Any) -> int:
    """The length of an interval such as "10 seconds" or "1 hour 30 minutes", in microseconds.

    Raises:
        TypeError, ValueError: It is none, or is negative.
    """
    if not isinstance(interval, str):
        raise TypeError(f'max_out_of_orderness must be an interval such as "10 seconds", got {interval!r}')
    text = interval.strip().lower().removeprefix("interval ").strip()
    parts = re.findall(r"(\d+(?:\.\d+)?)\s*([a-z]+)", text)
    if not parts or re.sub(r"(\d+(?:\.\d+)?)\s*([a-z]+)\s*", "", text):
        raise ValueError(f'max_out_of_orderness must be an interval such as "10 seconds", got {interval!r}')
    return sum(round(float(number) * _unit(unit, interval)) for number, unit in parts)


def _unit(unit: str, interval: str) -> int:
    found = UNITS.get(unit.removesuffix("s"))
    if found is None:
        units = ", ".join(f"{each}s" for each in UNITS)
        raise ValueError(f"max_out_of_orderness has an unknown unit, {unit!r}, in {interval!r}; use {units}")
    return found
