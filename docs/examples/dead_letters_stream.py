import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

from udfs import ordered_wait


async def look_up(code):  # call your service here
    if code == "JFK":
        raise ConnectionError("the service is down")
    return code.lower()


def two_tables(good, dead):
    """For `foreachBatch`: writes results to `good`, and failed rows to `dead`."""

    def write(rows, number):
        enriched = ordered_wait(
            rows, look_up, "found string", timeout=5.0, on_error="column"
        ).localCheckpoint()  # makes the calls, once
        results = enriched.where("error is null").drop("error")
        failed = enriched.where("error is not null").drop("found")
        results.write.mode("overwrite").parquet(f"{good}/batch={number}")
        failed.write.mode("overwrite").parquet(f"{dead}/batch={number}")

    return write


def run(spark, folder):
    stream = spark.readStream.schema("code string").option("maxFilesPerTrigger", 1)
    query = (
        stream.json(f"{folder}/incoming")
        .writeStream.foreachBatch(two_tables(f"{folder}/good", f"{folder}/dead"))
        .option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    found = spark.read.parquet(f"{folder}/good")
    failed = spark.read.parquet(f"{folder}/dead")
    print(sorted(row["found"] for row in found.collect()))
    print(sorted(failed.select("code", "error.type").collect()))


def main():
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    with tempfile.TemporaryDirectory() as folder:
        for codes in (["EWR", "JFK"], ["JFK", "LGA"], ["BOS"]):
            rows = spark.createDataFrame([(code,) for code in codes], "code string")
            rows.coalesce(1).write.mode("append").json(f"{folder}/incoming")
        run(spark, folder)

        for name in ("2", ".2.crc"):  # as if the driver had died in the last batch
            Path(folder, "checkpoint", "commits", name).unlink()
        run(spark, folder)  # repeats it
    spark.stop()


if __name__ == "__main__":
    main()
