"""Start `python -m udfs.demo.service --port 8000` first."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from udfs import AsyncFunction, unordered_wait
from udfs.http import client


class SlowService(AsyncFunction):
    running = 0

    async def open(self):  # once per Python worker
        self.http = client(base_url="http://127.0.0.1:8000")

    async def invoke(self, row):  # once per row
        self.running += 1
        running = self.running
        response = await self.http.get("/slow/1")  # takes one second
        self.running -= 1
        return {"status": response.status_code, "in_flight": running}

    async def close(self):
        await self.http.aclose()


def main():
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    rows = spark.range(1000, numPartitions=1).toDF("row")
    schema = "status int, in_flight int"  # the new columns
    called = unordered_wait(rows, SlowService(), schema, capacity=500, timeout=30.0)
    called.groupBy("status").agg(F.count("row"), F.max("in_flight")).show()
    spark.stop()


if __name__ == "__main__":
    main()
