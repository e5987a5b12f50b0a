"""Checks of types and columns when a query is built."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta
from difflib import get_close_matches
from itertools import count, islice
from typing import Any, Final

from pyspark.errors import ParseException
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType, TimestampNTZType, TimestampType

from .._sent.arrow_types import parts_of
from .._sent.zone import tzinfo_of
from .._spark_version import VariantType, parse_ddl

# The collation of strings that have no other one
BY_BYTES: Final = "UTF8_BINARY"

# A part of an interval, whose plural is a parameter of `timedelta`
_NUMBER_AND_UNIT: Final = r"(\d+(?:\.\d+)?)\s*(microsecond|millisecond|second|minute|hour|day|week)s?\s*"

COLUMNS: Final = 'the schema must give each new column a name and a type, such as "temp double, wind double"'
A_TYPE: Final = (
    'the type must be a Spark type or its DDL string, such as "double" or "struct<temp double, wind double>"'
)


def parse_type(declared: DataType | str, rule: str = A_TYPE) -> DataType:
    """The Spark type of a DDL string, or the type itself.

    Args:
        declared: The string or the type.
        rule: The first words of an error message.

    Raises:
        TypeError: The argument is neither.
        ValueError: The string is not valid DDL.
    """
    if isinstance(declared, DataType):
        return declared
    if not isinstance(declared, str):
        raise TypeError(f"{rule}; got {declared!r}")
    try:
        return parse_ddl(declared)
    except ParseException as error:
        raise ValueError(f"{rule}; got {declared!r} ({str(error).strip().splitlines()[0]})") from error


def new_columns(declared: DataType | str) -> StructType:
    """The columns that a schema adds. All are nullable, because a row may fail or its result may be None.

    Raises:
        TypeError: The schema has no columns.
        ValueError: It is not valid DDL, such as a name without a type.
    """
    dtype = parse_type(declared, COLUMNS)
    if not isinstance(dtype, StructType) or not dtype.fields:
        raise TypeError(f"{COLUMNS}; got {declared!r}")
    return StructType([StructField(each.name, each.dataType, nullable=True, metadata=each.metadata) for each in dtype])


def check_columns(
    existing: Sequence[str],
    added: Sequence[tuple[str, str]],
    inputs: Sequence[str],
    *,
    case: bool,
    function: str | None = None,
) -> dict[str, int]:
    """Check that each input column exists exactly once, and that no new column exists.

    Args:
        existing, inputs: Names of columns.
        added: The names of new columns, each with the keyword argument that gives it; "": the schema.
        case: Whether names are case-sensitive in the session.
        function: The name of the function whose parameters the inputs are; None: the user has given the names.

    Returns:
        The position of each input column.

    Raises:
        ValueError: A column does not meet these conditions. The message names it.
    """
    fold = str if case else str.lower
    known = [fold(name) for name in existing]
    for name in inputs:
        if fold(name) not in known:
            nearest = get_close_matches(fold(name), known, 1)
            hint = f"; did you mean {existing[known.index(nearest[0])]!r}?" if nearest else ""
            columns = f"(columns: {', '.join(existing)}){hint}"
            if function is None:
                raise ValueError(f"no such column: {name!r} {columns}")
            raise ValueError(
                f"{function} has a parameter {name!r}, but there is no such column {columns}: "
                "rename the parameter, or give inputs=[...]"
            )
    for name in inputs:
        if known.count(fold(name)) > 1:
            raise ValueError(f"there are several columns {name!r}: rename them first")
    for name, option in added:
        if fold(name) in known:
            how = f' with {option}="..."' if option else ""
            raise ValueError(
                f"there is a column {name!r} already: give the new one another name{how}, or drop the old one"
            )
    if len({fold(name) for name, _ in added}) < len(added):
        raise ValueError(f"two new columns have the same name ({', '.join(name for name, _ in added)}): rename one")
    return {name: known.index(fold(name)) for name in inputs}


def lookup_names(existing: Sequence[str], reserved: Sequence[str]) -> list[str]:
    """Names that Spark can look up: the existing ones, or numbered ones if that is impossible for any of them.

    `mapInArrow` looks up columns by name. It reads a dot as a field access, a backtick as a quote and "*" as all
    columns, and names that differ only in case are ambiguous.

    Args:
        existing: The names of the columns.
        reserved: Names that no column may have.
    """
    is_plain = all(re.fullmatch(r"\w+", name) for name in existing)
    folded = {name.lower() for name in existing}
    if is_plain and len(folded) == len(existing) and folded.isdisjoint(map(str.lower, reserved)):
        return list(existing)
    numbered = (name for n in count() if (name := f"_{n}") not in reserved)
    return list(islice(numbered, len(existing)))


def check_event_time_type(column: StructField) -> None:
    """Check that the column has a type for event times.

    Raises:
        TypeError: It is not a timestamp.
    """
    name, dtype = column.name, column.dataType
    if not isinstance(dtype, TimestampType | TimestampNTZType):
        raise TypeError(f"event_time must be a timestamp column, and {name!r} is {dtype.simpleString()}: cast it first")


def check_key_type(column: StructField) -> None:
    """Check that the column has a type for keys.

    Raises:
        TypeError: Its values cannot be compared, or may be equal although their bytes differ.
    """
    name, dtype = column.name, column.dataType
    if isinstance(dtype, ArrayType | MapType | StructType | VariantType):
        raise TypeError(f"key must be columns of plain values, and {name!r} is {dtype.simpleString()}: use its fields")
    check_collations("key", name, dtype)


def check_collations(user: str, name: str, dtype: DataType) -> None:
    """Check that equal strings of a column have equal bytes.

    Args:
        user: The parameter that compares them, for the error.
        name, dtype: Those of the column.

    Raises:
        TypeError: Its type, or one inside it, has a collation.
    """
    if any(getattr(part, "collation", BY_BYTES) != BY_BYTES for part in parts_of(dtype)):
        raise TypeError(
            f"{user} compares strings by their bytes, and {name!r} is {dtype.simpleString()}: use a string without a "
            "collation, such as collate(lower(...), 'UTF8_BINARY')"
        )


def check_time_zone(zone: str, dtype: DataType) -> None:
    """Check that values of this type can be exchanged with Python in a session with this time zone.

    Raises:
        ValueError: The type has timestamps, and Python has no such time zone.
    """
    if any(isinstance(each, TimestampType) for each in parts_of(dtype)):
        tzinfo_of(zone)


def microseconds(interval: Any) -> int:
    """The length of an interval such as "10 seconds" or "1 hour 30 minutes", in microseconds.

    Raises:
        TypeError: It is not a string.
        ValueError: It is not an interval, or it is negative.
    """
    rule = 'max_out_of_orderness must be an interval such as "10 seconds"'
    if not isinstance(interval, str):
        raise TypeError(f"{rule}, got {interval!r}")
    text = interval.strip().lower().removeprefix("interval ").strip()
    if not re.fullmatch(f"({_NUMBER_AND_UNIT})+", text):
        raise ValueError(
            f"{rule}, with microseconds, milliseconds, seconds, minutes, hours, days or weeks, got {interval!r}"
        )
    parts = re.findall(_NUMBER_AND_UNIT, text)
    length = sum((timedelta(**{f"{unit}s": float(number)}) for number, unit in parts), timedelta())
    return length // timedelta(microseconds=1)
