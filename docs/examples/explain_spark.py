import trio
from pyspark.sql import Observation, SparkSession

from udfs import explain, ordered_wait


async def lookup(number):
    await trio.sleep(0.5)
    return 2 * number


def main():
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    rows = spark.range(40, numPartitions=2).toDF("number")
    seen = Observation("lookup")
    ordered_wait(
        rows, lookup, "twice long", timeout=10.0, capacity=2, metrics=seen
    ).count()
    verdict = explain(seen)
    print(verdict.limit)
    print(verdict.advice)
    spark.stop()


if __name__ == "__main__":
    main()
