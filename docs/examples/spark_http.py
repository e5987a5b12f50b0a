"""Start `python -m udfs.demo.service` first."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from udfs.http_columns import http_get, http_request, register_http

SERVICE = "http://127.0.0.1:8000"


def get(flights):
    path = F.concat(F.lit(f"{SERVICE}/weather/"), "origin", F.lit("/"), "time_hour")
    pages = flights.withColumn("page", http_get(path, timeout=10.0))
    temp = F.get_json_object("page.body", "$.temp").alias("temp")
    for row in pages.select("origin", "page.status", temp).collect():
        print(row)


def trouble(spark):
    paths = spark.createDataFrame([("/flaky/2",), ("/busy/2",)], "path string")
    pages = paths.withColumn("page", http_get(F.concat(F.lit(SERVICE), "path")))
    for row in pages.select("path", "page.status").collect():
        print(row)


def sql(spark):
    register_http(
        spark,
        timeout=10.0,
        capacity=50,
        rate=200.0,
        cache=60.0,
        headers={"accept": "application/json"},
    )
    urls = [f"{SERVICE}/planes/N14228", f"{SERVICE}/planes/unknown", "http://", None]
    spark.createDataFrame([(url,) for url in urls], "url string").createTempView("urls")
    answers = spark.sql("""
        select page.status, get_json_object(page.body, '$.model') as model,
            page.error.type
        from (select http_get(url) as page from urls)
    """)
    for row in answers.collect():
        print(row)


def request(flights):
    url = F.concat(F.lit(f"{SERVICE}/planes/"), "origin")
    order = F.to_json(F.struct("origin"))
    headers = {"content-type": "application/json"}
    sent = flights.select(
        http_request("POST", url, headers, order).status.alias("status")
    )
    print([row.status for row in sent.collect()])


def main():
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    flights = spark.createDataFrame(
        [("EWR", "2013-01-01T10:00:00Z"), ("LAX", "2013-01-01T10:00:00Z")],
        "origin string, time_hour string",
    )
    get(flights)
    trouble(spark)
    sql(spark)
    request(flights)
    spark.stop()


if __name__ == "__main__":
    main()
