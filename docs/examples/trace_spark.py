import subprocess
import sys

import trio
from pyspark.sql import SparkSession

from trio_asyncio_io.trace import TraceRecorder
from udfs import unordered_wait


async def double(number):
    await trio.sleep(0.01)
    return 2 * number


if __name__ == "__main__":
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    rows = spark.range(1000, numPartitions=2).toDF("number")
    recorder = TraceRecorder("traces", every=10)
    doubled = unordered_wait(rows, double, "twice long", timeout=5.0, observer=recorder)
    doubled.write.parquet("doubled")
    command = ["-m", "trio_asyncio_io.trace", "merge", "traces", "-o", "run.json"]
    subprocess.run([sys.executable, *command], check=True)
