import json
import os
import tempfile
from pathlib import Path

import trio
from pyspark.sql import SparkSession

from udfs import ExponentialBackoff, ordered_wait, transient

COLUMNS = "key string, value string, partition int, offset bigint"


def topic(spark, servers):
    """Needs spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:4.3.0"""
    return (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", "events")
        .option("maxOffsetsPerTrigger", 10_000)  # limits the calls of a micro-batch
        .load()
        .selectExpr("string(key)", "string(value)", "partition", "offset")
    )


def files(spark, folder):
    """The same columns, from files."""
    rows = [
        {"key": "k", "value": f"v{n}", "partition": 0, "offset": n} for n in (0, 1, 2)
    ]
    Path(folder, "1.json").write_text("\n".join(json.dumps(row) for row in rows))
    return spark.readStream.schema(COLUMNS).json(folder)


async def look_up(value):  # call your service here
    await trio.sleep(0.01)
    return value.upper()


def enrich(stream):  # in the order of the offsets, for each partition
    retry = ExponentialBackoff(3, initial=0.2, maximum=2.0, retry_on=transient)
    return ordered_wait(stream, look_up, "found string", timeout=10.0, retry=retry)


def main():
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    with tempfile.TemporaryDirectory() as folder:
        servers = os.environ.get("KAFKA_SERVERS")
        stream = topic(spark, servers) if servers else files(spark, folder)
        query = (
            enrich(stream)
            .writeStream.format("memory")
            .queryName("enriched")
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        print(
            [(row["offset"], row["found"]) for row in spark.table("enriched").collect()]
        )
    spark.stop()


if __name__ == "__main__":
    main()
