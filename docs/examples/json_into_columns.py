"""Start `python -m udfs.demo.service` first."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from udfs.http_columns import http_get

SERVICE = "http://127.0.0.1:8000"
FIELDS = "temp double, humid double"  # the fields to read from the JSON


def main():
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    flights = spark.createDataFrame(
        [("EWR", "2013-01-01T10:00:00Z"), ("LAX", "2013-01-01T10:00:00Z")],
        "origin string, time_hour string",
    )
    url = F.concat(F.lit(f"{SERVICE}/weather/"), "origin", F.lit("/"), "time_hour")
    pages = flights.withColumn("page", http_get(url, timeout=10.0, capacity=50))
    found = F.when(F.col("page.status") == 200, F.from_json("page.body", FIELDS)).alias(
        "found"
    )
    columns = pages.select("origin", "page.status", found)
    for row in columns.select("origin", "status", "found.*").collect():
        print(row)
    spark.stop()


if __name__ == "__main__":
    main()
