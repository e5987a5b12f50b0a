import tempfile

import trio
from pyspark.sql import SparkSession

from udfs import CarryOver, ordered_wait, unordered_wait


async def weather(origin):
    await trio.sleep(0.01)  # call a service here
    return 39.0


def enrich(spark, flights, incoming):
    stream = spark.readStream.schema(flights.schema).json(incoming)
    query = (
        ordered_wait(stream, weather, "temp double", timeout=5.0)
        .writeStream.format("memory")
        .queryName("enriched")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    print([tuple(row) for row in spark.table("enriched").orderBy("origin").collect()])


class SometimesSlow:
    def __init__(self, folder):
        self.folder = folder

    async def invoke(self, origin):
        seen = trio.Path(self.folder, origin)
        if origin == "JFK" and not await seen.exists():
            await seen.touch()
            await trio.sleep(3600)  # a straggler; a second call is quick
        return f"weather at {origin}"


def carry_over(spark, flights, incoming, scratch):
    spark.conf.set(
        "spark.sql.streaming.stateStore.providerClass",
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    )
    spark.conf.set("spark.sql.shuffle.partitions", 2)  # the number of task slots

    stream = spark.readStream.schema(flights.schema).json(incoming)
    query = (
        unordered_wait(
            stream,
            SometimesSlow(scratch),
            "weather string",
            timeout=60.0,
            on_error="column",
            carry_over=CarryOver(budget=1.0, max_rows=10_000, max_age=600.0),
        )
        .writeStream.format("memory")
        .queryName("carried")
        .trigger(processingTime="1 second")
        .start()
    )
    while spark.table("carried").count() < 3:
        assert not query.awaitTermination(0.1)
    query.stop()
    print([row.weather for row in spark.table("carried").orderBy("origin").collect()])


def main():
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    flights = spark.createDataFrame([("EWR",), ("JFK",), ("LGA",)], "origin string")
    with (
        tempfile.TemporaryDirectory() as incoming,
        tempfile.TemporaryDirectory() as scratch,
    ):
        flights.write.mode("append").json(incoming)
        enrich(spark, flights, incoming)
        carry_over(spark, flights, incoming, scratch)
    spark.stop()


if __name__ == "__main__":
    main()
