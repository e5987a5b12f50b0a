import trio
from pyspark.sql import SparkSession

from trio_asyncio_io.report import report
from udfs import unordered_wait


async def double(number):
    await trio.sleep(0.01)
    return 2 * number


if __name__ == "__main__":
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    rows = spark.range(1000, numPartitions=2).toDF("number")
    with report("run.html", title="doubled numbers") as observer:
        doubled = unordered_wait(
            rows, double, "twice long", timeout=5.0, observer=observer
        )
        doubled.write.parquet("doubled")
    print("wrote", observer.path)
