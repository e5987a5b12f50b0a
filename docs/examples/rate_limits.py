"""Start `python -m udfs.demo.service` first."""

from pyspark.sql import Observation, SparkSession
from pyspark.sql import functions as F

from udfs import AsyncFunction, ExponentialBackoff, transient, unordered_wait
from udfs.http import client
from udfs.http_columns import http_get

SERVICE = "http://127.0.0.1:8000"


class Lookup(AsyncFunction):
    async def open(self):  # once per Python worker process
        self.http = client(base_url=SERVICE)

    async def invoke(self, key):  # once per attempt
        response = await self.http.get(f"/busy/{key}")  # the first one is a 429
        return response.raise_for_status().json()["key"]

    async def close(self):
        await self.http.aclose()


def with_a_function(keys):
    seen = Observation()
    unordered_wait(
        keys,
        Lookup(),
        "found string",
        cluster_rate=50,  # calls that start in a second, in all tasks together
        cluster_capacity=20,  # calls at once, in all tasks together
        timeout=60.0,  # for a row with all its attempts and their backoffs
        retry=ExponentialBackoff(5, initial=0.5, maximum=30.0, retry_on=transient),
        on_error="column",  # a row that fails nevertheless has its error beside it
        metrics=seen,
    ).write.format("noop").mode("overwrite").save()
    sums = seen.get
    print(sums["rows"], "rows,", sums["calls"], "calls,", sums["failed"], "failed")


def without_a_function(keys):
    url = F.concat(F.lit(f"{SERVICE}/busy/again-"), "key")
    page = http_get(url, cluster_rate=50, cluster_capacity=20, retries=5)
    pages = keys.select("key", page.alias("page"))
    for row in pages.groupBy("page.status").count().collect():
        print("status", row["status"], "in", row["count"], "rows")


def main():
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    keys = spark.range(20, numPartitions=2).selectExpr("concat('key', id) as key")
    with_a_function(keys)
    without_a_function(keys)
    spark.stop()


if __name__ == "__main__":
    main()
