import trio
from pyspark.sql import SparkSession

from udfs import unordered_wait


async def country(ip):
    await trio.sleep(0.1)  # call your service here
    return "NL" if ip.endswith("7") else None


if __name__ == "__main__":
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    visits = spark.range(1000).selectExpr("concat('192.0.2.', id) as ip")
    found = unordered_wait(visits, country, "country string", capacity=100, timeout=5.0)
    found.groupBy("country").count().orderBy("count").show()
