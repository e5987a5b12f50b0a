"""The column UDF and the DataFrame operators behind one signature, for tests of what they have in common."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from tests.support import PATIENCE, thorough_except, variation_except
from udfs import async_pandas_udf, keyed_wait, ordered_wait, unordered_wait

# `just test` runs a column UDF and one operator, which have little code in common; the others vary the operator's order
EVERY_ENTRY_POINT = pytest.mark.parametrize(
    "entry_point", thorough_except(["column", "unordered"], ["column", "ordered", "unordered", "keyed"])
)
# For what a column UDF and an operator do with the same code
COLUMN_AND_ROWS = pytest.mark.parametrize("entry_point", variation_except(["unordered"], ["column", "unordered"]))


def with_answer(
    df: DataFrame, entry_point: str, function: Any, kind: str = "string", *, inputs: Any = ("id",), **options: Any
) -> DataFrame:
    """The DataFrame with a column `answer` of this type, and with `on_error="column"` also a column `error`."""
    options = {"timeout": PATIENCE, **options}
    if entry_point == "column":
        out = df.withColumn("answer", async_pandas_udf(function, kind, **options)(*inputs))
        if options.get("on_error") != "column":
            return out
        return out.withColumns({"answer": F.col("answer.result"), "error": F.col("answer.error")})
    schema = f"answer {kind}"
    if entry_point == "keyed":
        return keyed_wait(df, function, schema, inputs=list(inputs), key=list(inputs), **options)
    wait = {"ordered": ordered_wait, "unordered": unordered_wait}[entry_point]
    return wait(df, function, schema, inputs=list(inputs), **options)
