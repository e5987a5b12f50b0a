"""The stages: the plan of a streaming query whose rows may be carried over, and what it needs of the session."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

import pyarrow as pa
import pyspark
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it
from pyspark.sql.types import StructType

from .._plan.worker_python import needs_packages
from .._task.enrichment import Enrichment
from .buckets import Buckets, bucket_ids, partitions_of_query
from .options import CarryOver
from .processor import PAYLOAD, CarryingProcessor, unpacked

__all__ = ["HASH_COLUMN", "check_carry_over", "in_stages"]

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
MESSAGES = "pyspark.sql.streaming.proto.StateMessage_pb2"

SLICES = "bucket int, place long, payload binary"
HASH_COLUMN = "__hash"


def check_carry_over(carry_over: object, df: DataFrame) -> None:
    """Check that rows can be carried over here.

    Raises:
        TypeError: It is no `CarryOver`.
        ValueError: The DataFrame is not streaming, or the session has another state store than RocksDB.
        RuntimeError: The session is a remote one of Spark 4.0, which has no stateful operator for Python.
        ImportError: protobuf is missing, by which Spark's workers speak to the state store.
    """
    if not isinstance(carry_over, CarryOver):
        raise TypeError(f"carry_over must be a CarryOver, such as CarryOver(budget=5.0), got {carry_over!r}")
    if not df.isStreaming:
        raise ValueError("carry_over is for a streaming DataFrame: a batch query has no later micro-batch to carry to")
    if not hasattr(df.groupBy(), "transformWithStateInPandas"):
        raise RuntimeError(
            f"carry_over needs Spark 4.1 or newer in a remote session, and this is {pyspark.__version__}; in a classic "
            "session it works with this one, too"
        )
    provider = str(df.sparkSession.conf.get(PROVIDER))
    if not provider.endswith(".RocksDBStateStoreProvider"):
        raise ValueError(f'carry_over needs the RocksDB state store, got {provider}: set "{PROVIDER}" to "{ROCKSDB}"')
    try:
        import_module(MESSAGES)
    except Exception as error:  # missing, or too old, for which protobuf has an exception of its own
        raise ImportError(
            f"carry_over needs protobuf, here and on the workers: pip install 'trio-asyncio-io[spark]' ({error})"
        ) from error


def in_stages(
    df: DataFrame,
    enrichment: Enrichment,
    carry_over: CarryOver,
    *,
    existing: StructType,
    schema: StructType,
    key: Sequence[str],
) -> DataFrame:
    """The enriched DataFrame: rows are packed and spread over buckets, enriched with a state, and unpacked.

    Args:
        df: Streaming, with names that Spark can look up.
        enrichment: How to enrich the rows.
        carry_over: The budget, and what else bounds the rows in the state.
        existing: The user's columns, at the same places and with their own names.
        schema: That of the enriched rows.
        key: Columns of `df` whose rows must stay together and in order; none: rows go round.
    """
    planned = int(str(df.sparkSession.conf.get("spark.sql.shuffle.partitions")))
    in_order = bool(key)
    processor: Any = CarryingProcessor(enrichment, carry_over, existing, planned, in_order=in_order)
    names = tuple(existing.names)

    def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return Buckets(bucket_ids(partitions_of_query(planned)), names, by_hash=in_order).run(batches)

    def unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return unpacked(batches)

    name = enrichment.settings.function.name
    pack.__name__ = pack.__qualname__ = f"{name}: pack"
    unpack.__name__ = unpack.__qualname__ = f"{name}: unpack"
    if in_order:
        df = df.withColumn(HASH_COLUMN, F.hash(*key))
    stateful = (
        df.mapInArrow(needs_packages(pack), SLICES)
        .groupBy("bucket")
        .transformWithStateInPandas(processor, PAYLOAD, outputMode="append", timeMode="ProcessingTime")
    )
    return stateful.mapInArrow(unpack, schema)
