import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import trio
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from udfs import CarryOver, keyed_wait

PAYMENTS = "account string, number int, at timestamp"


class Post:
    def __init__(self, folder):
        self.folder = folder

    async def invoke(self, account, number):  # call your service here
        seen = trio.Path(self.folder, f"{account} {number}")
        if (account, number) == ("ann", 1) and not await seen.exists():
            await seen.touch()
            await trio.sleep(3600)  # a straggler; a second call is quick
        return {"receipt": f"{account}-{number}", "called": time.time()}


def payments(spark, folder):
    return (
        spark.readStream.schema(PAYMENTS)
        .option("maxFilesPerTrigger", 1)  # rows of two files have no order
        .json(f"{folder}/incoming")
    )


def post(stream, folder):
    return keyed_wait(
        stream,
        Post(folder),
        "receipt string, called double",
        key="account",
        inputs=["account", "number"],
        timeout=60.0,
        on_error="column",
        carry_over=CarryOver(budget=2.0, max_age=600.0),
    )


def job(folder, rows):
    """Run the query until its table has this number of rows."""
    spark = (
        SparkSession.builder.master("local[2]")
        .config(
            "spark.sql.streaming.stateStore.providerClass",
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
        )
        .config("spark.sql.shuffle.partitions", 2)  # the number of task slots
        .config("spark.sql.files.minPartitionNum", 1)  # a file is one partition
        .getOrCreate()
    )
    posted = post(payments(spark, folder), folder)
    query = (
        posted.writeStream.format("parquet")  # writes each micro-batch once
        .option("path", f"{folder}/posted")
        .option("checkpointLocation", f"{folder}/checkpoint")  # what resumes
        .trigger(processingTime="1 second")
        .start()
    )
    table = spark.read.schema(posted.schema)
    while query.isActive and table.parquet(f"{folder}/posted").count() < rows:
        query.awaitTermination(1)
    query.stop()
    show(table.parquet(f"{folder}/posted"))
    minutes(spark, posted.schema, folder)
    spark.stop()


def show(posted):
    rows = sorted(posted.collect(), key=lambda row: row.called)
    print(len(rows), "rows,", len({row.receipt for row in rows}), "distinct")
    for account in ("ann", "bob"):
        print(account, [row.number for row in rows if row.account == account])


def minutes(spark, schema, folder):
    """Count per minute, with a watermark, as a second query over the table."""
    counts = (
        spark.readStream.schema(schema)
        .parquet(f"{folder}/posted")
        .withWatermark("at", "660 seconds")  # lateness + max_age + a micro-batch
        .groupBy(F.window("at", "1 minute"))
        .count()
    )
    query = counts.writeStream.format("memory").queryName("minutes")
    query.trigger(availableNow=True).start().awaitTermination()
    found = spark.table("minutes").select("window.start", "count").orderBy("start")
    print([(f"{start:%H:%M}", count) for start, count in found.collect()])


def arrive(folder, minute, *numbers):
    """A file with payments, as another system would write it."""
    at = f"2026-01-01 12:{minute:02}:00"
    rows = [
        json.dumps({"account": account, "number": number, "at": at})
        for number in numbers
        for account in ("ann", "bob")
    ]
    path = Path(folder, "incoming", f"{minute}.json")
    path.write_text("\n".join(rows))
    os.utime(path, (minute, minute))  # Spark reads the oldest file first


def main():
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "incoming").mkdir()
        Path(folder, "posted").mkdir()
        arrive(folder, 0, 1, 2)
        arrive(folder, 1, 3, 4)
        command = [sys.executable, __file__, folder, "12"]
        first = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, start_new_session=True
        )
        while not Path(folder, "checkpoint/commits/0").exists():
            assert first.poll() is None
            time.sleep(0.1)
        os.killpg(first.pid, signal.SIGKILL)  # Python and the JVM
        first.wait()
        arrive(folder, 30, 5, 6)  # while nothing runs
        subprocess.run(command, check=True)


if __name__ == "__main__":
    if len(sys.argv) == 1:
        main()
    else:
        job(sys.argv[1], int(sys.argv[2]))
