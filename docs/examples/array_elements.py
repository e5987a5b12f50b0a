from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from udfs import unordered_wait


async def country(ip):
    return "NL" if ip.endswith("7") else "BE"  # call a service here


def main():
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    visits = spark.createDataFrame(
        [(1, ["192.0.2.7", "192.0.2.8"]), (2, []), (3, ["192.0.2.17"])],
        "visit int, ips array<string>",
    )
    elements = visits.select("visit", F.posexplode("ips").alias("position", "ip"))
    called = unordered_wait(elements, country, "country string", timeout=5.0)
    pairs = F.sort_array(F.collect_list(F.struct("position", "country")))
    collected = called.groupBy("visit").agg(pairs["country"].alias("countries"))
    joined = visits.join(collected, "visit", "left")  # an empty array has no element
    joined.select("visit", "countries").orderBy("visit").show()
    spark.stop()


if __name__ == "__main__":
    main()
