"""Needs the service: python -m udfs.demo.service"""

from pyspark.sql import Observation, SparkSession
from pyspark.sql import functions as F

from trio_asyncio_io import transient
from trio_asyncio_io.gates import RateLimit
from udfs import AsyncFunction, ExponentialBackoff, unordered_wait
from udfs.http import client
from udfs.http_columns import http_get

SERVICE = "http://127.0.0.1:8000"
SLOTS = 2  # the tasks that run at once: local[2] has two


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
        cluster_capacity=20,  # at most 20 calls at once in all
        timeout=120.0,
        retry=ExponentialBackoff(5, initial=0.5, maximum=30.0, retry_on=transient),
        gate=RateLimit(50.0 / SLOTS),  # 50 calls per second in all
        on_error="column",  # a row that fails nevertheless has its error beside it
        metrics=seen,
    ).write.format("noop").mode("overwrite").save()
    print(seen.get["rows"], "rows", seen.get["retried"], "retried")


def without_a_function(keys):
    url = F.concat(F.lit(f"{SERVICE}/busy/"), "key")
    page = http_get(url, rate=50.0 / SLOTS, retries=5, cluster_capacity=20)
    pages = keys.select("key", page.alias("page"))
    for row in pages.groupBy("page.status").count().collect():
        print("status", row["status"], "in", row["count"], "rows")


def main():
    spark = SparkSession.builder.master(f"local[{SLOTS}]").getOrCreate()
    keys = spark.range(20).selectExpr("concat('row', id) as key")
    with_a_function(keys)
    without_a_function(keys)
    spark.stop()


if __name__ == "__main__":
    main()
