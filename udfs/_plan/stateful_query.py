"""The plan of a streaming query with carry-over, and its requirements."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from .._extras import needs_extra
from .._sent.bucket_ids import bucket_ids
from .._sent.settings import CarryOver
from .._spark_thread.micro_batch import PAYLOAD, Buckets, CarryingProcessor, partitions_of_query, unpacked
from .._spark_version import check_carries_over
from .row_plan import HASH_COLUMN, RowPlan
from .session import shuffle_partitions
from .worker_python import for_map_in_arrow

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
MESSAGES = "pyspark.sql.streaming.proto.StateMessage_pb2"

SLICES = "bucket int, place long, payload binary"


def check_carry_over(carry_over: object, df: DataFrame, event_time: str | None) -> None:
    """Check that the rows of this DataFrame can be carried over.

    Args:
        carry_over: From the user.
        df: The DataFrame to enrich.
        event_time: The name of the event time column, or None.

    Raises:
        TypeError: `carry_over` is not a `CarryOver`.
        ValueError: The DataFrame is not streaming, the session's state store is not RocksDB, or there is an event time.
        RuntimeError: This Spark has no stateful operator for Python.
        ImportError: protobuf is missing or too old. Spark's workers need it to reach the state store.
    """
    if not isinstance(carry_over, CarryOver):
        raise TypeError(f"carry_over must be a CarryOver, such as CarryOver(budget=5.0), got {carry_over!r}")
    if not df.isStreaming:
        raise ValueError(
            "carry_over is for a streaming DataFrame: a batch query has no later micro-batch to carry rows over to"
        )
    check_carries_over(df)
    provider = str(df.sparkSession.conf.get(PROVIDER))
    if not provider.endswith(".RocksDBStateStoreProvider"):
        raise ValueError(f'carry_over needs the RocksDB state store, got {provider}: set "{PROVIDER}" to "{ROCKSDB}"')
    _check_protobuf()
    if event_time is not None:
        raise ValueError(
            f"carry_over and event_time={event_time!r} exclude each other: a row that is carried over comes out "
            "behind rows of later micro-batches, and would cross their watermarks"
        )


def _check_protobuf() -> None:
    """Check that the code that Spark brings for its state store finds a protobuf that is new enough."""
    try:
        with needs_extra("carry_over", "carry-over"):
            import_module(MESSAGES)
    except ModuleNotFoundError:
        raise
    except Exception as error:  # protobuf has its own exception for a version that is too old
        raise ImportError(
            "carry_over needs a newer protobuf on the driver and on the workers: pip install --upgrade protobuf "
            f"({error})"
        ) from error


def query_with_carry_over(plan: RowPlan, carry_over: CarryOver) -> DataFrame:
    """The enriched DataFrame, in three stages: pack the rows into buckets, enrich them with a state, and unpack them.

    Args:
        plan: Its source is streaming. Rows of one key stay together and in order; rows without keys are distributed
            evenly.
        carry_over: The budget, and the limits of the rows that are carried over.
    """
    df, name = plan.source, plan.enrichment.settings.function.name
    planned = shuffle_partitions(df.sparkSession)
    in_order = bool(plan.keys)
    processor: Any = CarryingProcessor(plan.enrichment, carry_over, plan.columns, in_order=in_order)
    names, output = tuple(plan.columns.names), tuple(plan.schema.names)

    def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return Buckets(bucket_ids(partitions_of_query(planned)), names, by_hash=in_order).run(batches)

    def unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return unpacked(batches, output)

    if in_order:
        df = df.withColumn(HASH_COLUMN, F.hash(*plan.keys))
    stateful = (
        df.mapInArrow(for_map_in_arrow(f"{name}: pack", pack), SLICES)
        .groupBy("bucket")
        .transformWithStateInPandas(processor, PAYLOAD, outputMode="append", timeMode="ProcessingTime")
    )
    return stateful.mapInArrow(for_map_in_arrow(f"{name}: unpack", unpack), plan.schema)
