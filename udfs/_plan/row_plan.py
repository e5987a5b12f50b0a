"""Row plan: a DataFrame operator, resolved against the columns of one DataFrame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType

from .._sent.arrow_types import plan_fields
from .._sent.extra_columns import extra_columns
from .._sent.settings import Enrichment, Flatten, Settings
from .schema import check_columns, check_event_time_type, check_key_type, check_time_zone, lookup_names
from .session import time_zone

# Columns of these names are added to `source`: the first by the carry-over, the others by a memo
HASH_COLUMN = "__hash"
BUCKET_COLUMN = "__udfs_bucket"
PLACE_COLUMN = "__udfs_place"
_OWN_COLUMNS = [HASH_COLUMN, BUCKET_COLUMN, PLACE_COLUMN]


@dataclass(frozen=True, slots=True)
class RowPlan:
    """A function and the columns that it gets and adds.

    Attributes:
        source: The DataFrame, with column names that Spark can look up.
        columns: Its columns under the user's names, in the same order.
        schema: The columns of the enriched rows, with the names of `source`.
        names: Their names for the user.
        keys: The names of the key columns in `source`.
        enrichment: How the tasks enrich the rows.
    """

    source: DataFrame
    columns: StructType
    schema: StructType
    names: tuple[str, ...]
    keys: tuple[str, ...]
    enrichment: Enrichment


def plan_rows(
    df: DataFrame,
    added: StructType,
    settings: Settings,
    *,
    inputs: Sequence[str],
    event_time: str | None = None,
    keys: Sequence[str] = (),
    flatten: Flatten,
    are_parameters: bool = False,
) -> RowPlan:
    """Check all column names, and find the columns.

    Args:
        df: The DataFrame to enrich.
        added: The new columns.
        settings: The settings of the UDF.
        inputs, event_time, keys, flatten: As in the public functions.
        are_parameters: Whether the inputs are the names of the function's parameters.

    Raises:
        TypeError: A column cannot be an event time or a key.
        ValueError: A column does not exist, or a new column exists already or has a reserved name.
    """
    for name in added.names:
        if name.lower() in _OWN_COLUMNS:
            raise ValueError(f"the new column {name!r} has a reserved name: give it another one")
    existing = df.schema
    extras = extra_columns(settings)
    case = str(df.sparkSession.conf.get("spark.sql.caseSensitive")).lower() == "true"
    new_names = [*((name, "") for name in added.names), *((extra.name, extra.option) for extra in extras)]
    function = settings.function.name if are_parameters else None
    position = check_columns(existing.names, new_names, inputs, case=case, function=function)
    others = list(keys) if event_time is None else [event_time, *keys]
    position |= check_columns(existing.names, [], others, case=case)
    if event_time is not None:
        check_event_time_type(existing.fields[position[event_time]])
    for name in keys:
        check_key_type(existing.fields[position[name]])
    zone = time_zone(df.sparkSession)
    check_time_zone(zone, StructType([*(existing.fields[position[name]] for name in inputs), *added]))
    columns = StructType(plan_fields(existing))
    new = [*plan_fields(added), *(StructField(extra.name, extra.dtype) for extra in extras)]
    names = lookup_names(existing.names, [*_OWN_COLUMNS, *(field.name for field in new)])
    renamed = [
        StructField(name, each.dataType, each.nullable, each.metadata)
        for name, each in zip(names, columns, strict=True)
    ]
    return RowPlan(
        source=df if names == existing.names else df.toDF(*names),
        columns=columns,
        schema=StructType([*renamed, *new]),
        names=(*existing.names, *(field.name for field in new)),
        keys=tuple(names[position[name]] for name in keys),
        enrichment=Enrichment(
            settings,
            added,
            zone,
            inputs=tuple(position[name] for name in inputs),
            event_time=None if event_time is None else position[event_time],
            key=tuple(position[name] for name in keys),
            flatten=flatten,
        ),
    )
