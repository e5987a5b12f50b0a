"""Spark version: everything that differs between PySpark 3.5 and 4.3, on the driver and in the workers."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

import pyarrow as pa
import pyspark
from pyspark.sql import types as T  # noqa: N812 - the usual name
from pyspark.sql.pandas.types import to_arrow_type


class _MissingType(T.DataType):
    """In place of a type that this PySpark lacks. It has no instances."""


VariantType: Final[type[T.DataType]] = getattr(T, "VariantType", _MissingType)  # new in Spark 4.0
VariantVal: Final[Any] = getattr(T, "VariantVal", _MissingType)
TimeType: Final[type[T.DataType]] = getattr(T, "TimeType", _MissingType)  # new in Spark 4.1

# Local properties of a task with the number of stateful partitions, which Spark stores in the checkpoint: the first
# since Spark 4.1, the second before.
STATE_PARTITIONS: Final = ("spark.sql.streaming.internal.stateStore.partitions", "spark.sql.shuffle.partitions")


def parse_ddl(text: str) -> T.DataType:
    """The Spark type of a DDL string. Spark 3.5 needs an active session for this.

    Raises:
        pyspark.errors.ParseException: The string is not valid DDL.
    """
    if hasattr(T.DataType, "fromDDL"):
        return T.DataType.fromDDL(text)
    if import_module("pyspark.sql.utils").is_remote():
        parse: Any = import_module("pyspark.sql.connect.types").parse_data_type
    else:
        parse = T._parse_datatype_string  # noqa: SLF001 - what `fromDDL` calls
    dtype: T.DataType = parse(text)
    return dtype


def arrow_type_in_utc(dtype: T.DataType) -> pa.DataType:
    """The Arrow type of a Spark type. Timestamps are in UTC."""
    try:
        return to_arrow_type(dtype, timezone="UTC")
    except TypeError as error:
        if "timezone" not in str(error):
            raise
        return to_arrow_type(dtype)  # Spark before 4.2 has no such argument, and always uses UTC


def has_arrow_udf() -> bool:
    """Whether Spark has Arrow UDFs, which are new in 4.1. Called on the driver."""
    return hasattr(import_module("pyspark.sql.functions"), "arrow_udf")


def column_udf(function: Callable[..., Any], dtype: T.DataType) -> Any:
    """Spark's UDF that maps an iterator to an iterator: an Arrow UDF or, where Spark has none, a pandas UDF.

    Args:
        function: Its type hints select the evaluation from iterator to iterator.
        dtype: The type of the column.
    """
    functions: Any = import_module("pyspark.sql.functions")  # here, because no worker needs it
    make = functions.arrow_udf if has_arrow_udf() else functions.pandas_udf
    return make(function, dtype)


def check_carries_over(df: Any) -> None:
    """Check that this Spark has a stateful operator for Python.

    Raises:
        RuntimeError: It does not: Spark 3.5, or a remote session of Spark 4.0.
    """
    if not hasattr(df.groupBy(), "transformWithStateInPandas"):
        needed = "4.0 or newer" if pyspark.__version__.startswith("3.") else "4.1 or newer in a remote session"
        raise RuntimeError(
            f"carry_over needs Spark {needed}, and this is {pyspark.__version__}: upgrade Spark, or omit carry_over "
            "and bound the duration of a micro-batch with timeout="
        )


def check_reports_progress(session: Any) -> None:
    """Check that this remote session reports the progress of its queries.

    Raises:
        RuntimeError: It does not: Spark 3.5.
    """
    if not hasattr(session, "registerProgressHandler"):
        raise RuntimeError(
            f"progress needs Spark 4.0 or newer in a remote session, and this is {pyspark.__version__}: "
            "upgrade Spark, or use a classic session"
        )
