import json
import tempfile
from pathlib import Path

import trio
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from trio_asyncio_io import transient
from udfs import ExponentialBackoff, ordered_wait

ROOMS = {"s1": "hall", "s2": "attic"}


async def room(sensor):  # call your service here
    await trio.sleep(0.5 if sensor == "s1" else 0.01)
    return ROOMS[sensor]


def enrich(readings):
    retry = ExponentialBackoff(3, initial=0.2, maximum=2.0, retry_on=transient)
    return ordered_wait(
        readings, room, "room string", inputs=["sensor"], timeout=10.0, retry=retry
    )


def main():
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    spark.conf.set("spark.sql.shuffle.partitions", 2)
    with tempfile.TemporaryDirectory() as folder:
        rows = [("s1", "12:00:01"), ("s2", "12:00:03"), ("s1", "12:00:02")]
        rows += [("s2", "12:01:30"), ("s1", "12:09:00")]
        lines = [json.dumps({"sensor": s, "at": f"2026-01-01 {t}"}) for s, t in rows]
        Path(folder, "readings.json").write_text("\n".join(lines))

        readings = spark.readStream.schema("sensor string, at timestamp").json(folder)
        counts = (
            enrich(readings)  # the rows of a partition keep their order
            .withWatermark("at", "10 seconds")  # after the operator, never before it
            .groupBy(F.window("at", "1 minute"), "room")
            .count()
        )
        query = (
            counts.writeStream.format("memory")
            .queryName("counts")
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        found = spark.table("counts").selectExpr("window.start", "room", "count")
        for row in found.orderBy("start", "room").collect():
            print(f"{row['start']:%H:%M}", row["room"], row["count"])
    spark.stop()


if __name__ == "__main__":
    main()
