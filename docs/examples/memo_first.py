from pyspark.sql import Observation, SparkSession

from udfs import unordered_wait

VISITS = [("192.0.2.1",), ("192.0.2.7",), ("192.0.2.1",), ("192.0.2.1",)]


async def country(ip):
    return {"192.0.2.1": "NL"}.get(ip)  # call a service here


def enrich(visits):
    calls = Observation()
    unordered_wait(
        visits, country, "country string", timeout=5.0, memo="countries", metrics=calls
    ).collect()
    print(calls.get["calls"], "calls for", calls.get["rows"], "rows")


def main():
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    visits = spark.createDataFrame(VISITS, "ip string")
    enrich(visits)
    enrich(visits.union(spark.createDataFrame([("192.0.2.9",)], visits.schema)))
    spark.stop()


if __name__ == "__main__":
    main()
