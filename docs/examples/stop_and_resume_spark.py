import tempfile
from pathlib import Path

import trio
from pyspark.sql import SparkSession

from trio_asyncio_io import transient
from udfs import ExponentialBackoff, ordered_wait


async def look_up(value):  # call your service here
    await trio.sleep(0.01)
    return value.upper()


def run_once(spark, folder):
    lines = spark.readStream.text(f"{folder}/incoming")
    retry = ExponentialBackoff(3, initial=0.2, maximum=2.0, retry_on=transient)
    query = (
        ordered_wait(lines, look_up, "found string", timeout=10.0, retry=retry)
        .writeStream.format("parquet")  # an exactly-once sink
        .option("path", f"{folder}/output")
        .option("checkpointLocation", f"{folder}/checkpoint")  # what resumes
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    found = spark.read.parquet(f"{folder}/output").orderBy("value").collect()
    print([row["found"] for row in found])


def main():
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    with tempfile.TemporaryDirectory() as folder:
        incoming = Path(folder, "incoming")
        incoming.mkdir()
        (incoming / "1.txt").write_text("a\nb\n")
        run_once(spark, folder)
        (incoming / "2.txt").write_text("c\n")
        run_once(spark, folder)  # as after a restart: only the new file is read
    spark.stop()


if __name__ == "__main__":
    main()
