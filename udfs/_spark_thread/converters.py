"""Converters: return values of the user's function to values that Arrow stores exactly as the declared type."""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import types as T  # noqa: N812 - the usual name
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from .._sent.arrow_types import Convert, arrow_type, unchanged
from .._sent.zone import tzinfo_of
from .._spark_version import TimeType, VariantType, VariantVal
from .misfits import MisfitError, NullFieldError, has_nanoseconds, is_missing

# Types of most results, whose values have no fields. To find that out by checks for a mapping, a tuple and a dataclass
# takes longer than the rest of a conversion.
FIELDLESS = frozenset({type(None), bool, int, float, str, bytes, date, datetime, Decimal, list})

# The smallest double that rounds to an infinite float: halfway between the largest float and the next power of two
FLOAT_OVERFLOW = (2 - 2.0**-24) * 2.0**127

# A variant stores longer numbers as doubles
EXACT_DIGITS = 38

# value -> None if it is a missing value of pandas or NumPy; otherwise, raises a MisfitError
Refuse = Callable[..., None]


def converter(dtype: DataType, zone: str, path: tuple[str, ...] = ()) -> Convert | None:
    """The conversion of each value before Arrow stores it; None if Arrow stores it exactly without one.

    A struct may be a mapping, a dataclass, a named tuple, a Spark row or a plain tuple; a map must be a mapping; an
    array may be any iterable, which is read once; a masked value of NumPy inside it is null. A naive datetime for a
    `timestamp` is in the time zone `zone`, as in a pandas UDF. The converter raises a `MisfitError` if Arrow would
    change the value, and if a value inside is None and its type is NOT NULL. NaT and pandas' NA are None. Arrow refuses
    all other values that do not fit; then `fitted` finds the first of them.

    Args:
        dtype: The declared type.
        zone: The session's time zone.
        path: The place of the value inside the result, for error messages.
    """
    refuse = partial(_refuse, dtype, path)
    if isinstance(dtype, StructType):
        return _struct_converter(dtype, zone, path)
    if isinstance(dtype, ArrayType):
        inner = _inner(dtype.elementType, zone, (*path, "element"), nullable=dtype.containsNull)
        return _array_converter(inner, is_float=isinstance(dtype.elementType, T.FloatType), refuse=refuse)
    if isinstance(dtype, MapType):
        return _map_converter(dtype, zone, path, refuse)
    return _scalar_converter(dtype, zone, refuse)


def fitted(dtype: DataType, value: Any, path: tuple[str, ...] = ()) -> Any:
    """A converted value that Arrow refuses, with None for each missing value of pandas or NumPy inside it.

    Args:
        dtype: The declared type.
        value: The converted value.
        path: The place of the value inside the result, for error messages.

    Raises:
        MisfitError: A value inside it, or the value, does not fit. It is the first one.
    """
    if value is None or is_missing(value):
        return None
    if isinstance(dtype, StructType):
        return {
            each.name: _fitted(each.dataType, value[each.name], (*path, each.name), each.nullable) for each in dtype
        }
    if isinstance(dtype, ArrayType):
        return [_fitted(dtype.elementType, each, (*path, "element"), dtype.containsNull) for each in value]
    if isinstance(dtype, MapType):
        return [
            (
                _fitted(dtype.keyType, key, (*path, "key"), nullable=False),
                _fitted(dtype.valueType, item, (*path, "value"), dtype.valueContainsNull),
            )
            for key, item in value
        ]
    try:
        pa.array([value], arrow_type(dtype), from_pandas=False)
    except Exception:  # noqa: BLE001 - from Arrow or the user's object, depending on both types
        raise MisfitError(dtype, path, value) from None
    return value


def _fitted(dtype: DataType, value: Any, path: tuple[str, ...], nullable: bool) -> Any:  # noqa: FBT001 - as in Spark
    value = fitted(dtype, value, path)
    if value is None and not nullable:
        raise NullFieldError(dtype, path)
    return value


def _refuse(dtype: DataType, path: tuple[str, ...], value: Any, advice: str | None = None) -> None:
    if not is_missing(value):
        raise MisfitError(dtype, path, value, advice)


def _inner(dtype: DataType, zone: str, path: tuple[str, ...], *, nullable: bool) -> Convert | None:
    """The converter of a value inside the result."""
    convert = converter(dtype, zone, path)
    if nullable:
        return convert

    def required(value: Any) -> Any:
        converted = value if convert is None else convert(value)
        if converted is None:
            raise NullFieldError(dtype, path)
        return converted

    return required


def only_field(value: Any, name: str) -> Any:
    """The field of a value whose only field has this name; any other value itself."""
    if type(value) in FIELDLESS:
        return value
    named = _named_fields(value)
    return value if named is None or named.keys() != {name} else named[name]


def _fields_of(value: Any, dtype: StructType, path: tuple[str, ...]) -> Mapping[str, Any]:
    """The value of a struct as a mapping with exactly its names.

    Raises:
        MisfitError: It has other names, or none.
    """
    names = dtype.names
    found = _named_fields(value)
    if found is None and isinstance(value, tuple) and len(value) == len(names):
        return dict(zip(names, value, strict=True))
    if found is None:
        raise MisfitError(dtype, path, value)
    if found.keys() != set(names):
        missing = ", ".join(repr(name) for name in names if name not in found)
        parts = [f"return {missing}, too" if missing else "", "omit all fields but the declared ones"]
        has_unknown = any(name not in names for name in found)
        raise MisfitError(dtype, path, value, ", and ".join(filter(None, parts if has_unknown else parts[:1])))
    return found


def _named_fields(value: Any) -> Mapping[str, Any] | None:
    """The fields of a mapping, a dataclass, a named tuple or a Spark row; None for any other value."""
    if isinstance(value, Mapping):
        return value
    if isinstance(value, tuple):
        names = getattr(value, "_fields", None) or getattr(value, "__fields__", None)
        return dict(zip(names, value, strict=True)) if names else None
    if is_dataclass(value) and not isinstance(value, type):
        # PySpark 3.5 sends classes in a form whose fields `dataclasses.fields` does not recognise
        return {name: getattr(value, name) for name in value.__dataclass_fields__}
    return None


def _struct_converter(dtype: StructType, zone: str, path: tuple[str, ...]) -> Convert:
    names = dtype.names
    inner = [
        (each.name, _inner(each.dataType, zone, (*path, each.name), nullable=each.nullable)) for each in dtype.fields
    ]
    changing = [(name, each) for name, each in inner if each is not None]
    expected = frozenset(names)

    def convert(value: Any) -> Any:
        if type(value) is dict and value.keys() == expected:  # most are: a check for a mapping takes longer
            found = value
        elif value is None or is_missing(value):
            return None
        else:
            fields = _fields_of(value, dtype, path)
            found = {name: fields[name] for name in names}
        for name, each in changing:
            before = found[name]
            if (after := each(before)) is not before:
                if found is value:  # the user's own dict, perhaps in a cache
                    found = dict(value)
                found[name] = after
        return found

    return convert


def _array_converter(each: Convert | None, *, is_float: bool, refuse: Refuse) -> Convert:
    def convert(value: Any) -> Any:
        if value is None or (each is None and type(value) in {list, tuple}):
            return value
        if isinstance(value, str | bytes | Mapping) or not hasattr(value, "__iter__"):
            return refuse(value)
        if hasattr(value, "__array__"):
            if isinstance(value, np.ma.MaskedArray):
                value = value.tolist()  # with None where it is masked. `__array__` has the data under the mask
            elif each is None or (is_float and getattr(value, "dtype", None) == "float32"):
                return value  # Arrow reads a NumPy array faster than a list
        return list(value) if each is None else [each(item) for item in value]

    return convert


def _map_converter(dtype: MapType, zone: str, path: tuple[str, ...], refuse: Refuse) -> Convert:
    key = _inner(dtype.keyType, zone, (*path, "key"), nullable=True) or unchanged
    item = _inner(dtype.valueType, zone, (*path, "value"), nullable=dtype.valueContainsNull) or unchanged

    def convert(value: Any) -> Any:
        if value is None:
            return None
        if not isinstance(value, Mapping):
            return refuse(value)
        return [(key(each), item(value[each])) for each in value]

    return convert


def _scalar_converter(dtype: DataType, zone: str, refuse: Refuse) -> Convert | None:
    """The conversion of one value, which leaves None alone; None for types that Arrow checks exactly by itself.

    Arrow would store 1.5 as the integer 1, 1e300 as an infinite float, any number as a date, a time or a timestamp,
    and a datetime as a date without its time of day. The converters refuse all of these.
    """
    if isinstance(dtype, T.TimestampType):
        return _instant(zone, refuse)
    if isinstance(dtype, T.VarcharType | T.CharType):
        return _text(dtype, refuse)
    return next((make(refuse) for plain, make in STRICT.items() if isinstance(dtype, plain)), None)


def _instant(zone: str, refuse: Refuse) -> Convert:
    def convert(value: Any) -> Any:
        if value is None:
            return None
        if not _is(datetime, value):
            return refuse(value)
        return value if value.tzinfo else value.replace(tzinfo=tzinfo_of(zone))

    return convert


def _text(dtype: T.VarcharType | T.CharType, refuse: Refuse) -> Convert:
    width = dtype.length if isinstance(dtype, T.CharType) else 0

    def convert(value: Any) -> Any:
        if value is None:
            return None
        if not isinstance(value, str) or len(value) > dtype.length:
            return refuse(value)
        return value.ljust(width)

    return convert


def _integer(refuse: Refuse) -> Convert:
    def convert(value: Any) -> Any:
        if value is None or type(value) in {int, bool}:  # Arrow refuses a bool
            return value
        try:
            return operator.index(value)
        except TypeError:
            if is_missing(value):
                return None
            # Not `math.trunc`, which a float32 of NumPy lacks
            if _is_number(value) and math.isfinite(value) and value == int(value):
                return int(value)
            return refuse(value)

    return convert


def _is_number(value: Any) -> bool:
    if type(value) is float:  # most are: a check for an abstract class takes longer
        return True
    return isinstance(value, Real | Decimal) and not isinstance(value, np.timedelta64)  # an integer for NumPy


def _float(refuse: Refuse) -> Convert:
    def convert(value: Any) -> Any:
        # A float32 of NumPy cannot be compared with the limit
        size = abs(float(value)) if _is_number(value) else 0.0
        return refuse(value) if FLOAT_OVERFLOW <= size < math.inf else value

    return convert


def _exactly(fits: Callable[[Any], bool]) -> Callable[[Refuse], Convert]:
    """The conversion that leaves None and the values that fit alone, and refuses all others."""

    def make(refuse: Refuse) -> Convert:
        return lambda value: value if value is None or fits(value) else refuse(value)

    return make


def _is_date(value: Any) -> bool:
    """Whether this is a date, or a naive datetime at midnight."""
    if not _is(date, value):
        return False
    return not isinstance(value, datetime) or (value.tzinfo is None and value.time() == time())


def _is(cls: type, value: Any) -> bool:
    """Whether this is a value of the class, without nanoseconds. NaT is none, although it is a datetime."""
    if type(value) is cls:
        return True
    return isinstance(value, cls) and not is_missing(value) and not has_nanoseconds(value)


def _variant(refuse: Refuse) -> Convert:
    def convert(value: Any) -> Any:
        if value is None or is_missing(value):
            return None
        if not isinstance(value, VariantVal):
            try:
                value = VariantVal.parseJson(_json(value))
            except Exception:  # noqa: BLE001 - from Spark or the user's object, such as of a number that is too large
                return refuse(value)
        return {"value": value.value, "metadata": value.metadata}

    return convert


def _json(value: Any) -> str:
    """The value as JSON. A mapping, a dataclass, a named tuple and a row become an object.

    Raises:
        TypeError: JSON has no such value.
    """
    if isinstance(value, np.generic | np.ndarray) and not is_missing(value):
        value = value.tolist()
    if value is None or isinstance(value, str | bool):
        return json.dumps(value)
    if is_missing(value):
        return "null"
    if isinstance(value, float) and math.isfinite(value):
        return repr(value)
    if isinstance(value, int | Decimal) and math.isfinite(value):
        text = f"{value:f}" if isinstance(value, Decimal) else str(value)
        if sum(map(str.isdigit, text)) <= EXACT_DIGITS:
            return text
    named = _named_fields(value)
    if named is not None and all(isinstance(name, str) for name in named):
        return f"{{{', '.join(f'{json.dumps(name)}: {_json(each)}' for name, each in named.items())}}}"
    if named is None and isinstance(value, list | tuple):
        return f"[{', '.join(map(_json, value))}]"
    raise TypeError(f"JSON has no {type(value).__name__}")


STRICT: dict[type[DataType], Callable[[Refuse], Convert]] = {
    T.IntegralType: _integer,
    T.FloatType: _float,
    T.DateType: _exactly(_is_date),
    T.DayTimeIntervalType: _exactly(lambda value: _is(timedelta, value)),
    T.TimestampNTZType: _exactly(lambda value: _is(datetime, value) and value.tzinfo is None),
    TimeType: _exactly(lambda value: _is(time, value) and value.tzinfo is None),
    VariantType: _variant,
}
