"""Start `python -m udfs.demo.service` first."""

import os

from pyspark.sql import SparkSession

from udfs import AsyncFunction, ExponentialBackoff, ordered_wait, transient
from udfs.http import client


class Planes(AsyncFunction):
    def __init__(self, url):
        self.url = url  # pickled: plain settings, never a secret

    async def open(self):  # in the worker
        token = os.environ["PLANES_TOKEN"]
        headers = {"authorization": f"Bearer {token}"}
        self.http = client(base_url=self.url, headers=headers)

    async def invoke(self, tailnum):
        response = await self.http.get(f"/planes/{tailnum}")
        return response.raise_for_status().json()["model"]

    async def close(self):
        await self.http.aclose()


def main():
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.executorEnv.PLANES_TOKEN", os.environ.get("PLANES_TOKEN", "x"))
        .getOrCreate()
    )
    planes = spark.createDataFrame([("N14228",)], "tailnum string")
    retry = ExponentialBackoff(3, initial=0.2, maximum=2.0, retry_on=transient)
    found = ordered_wait(
        planes,
        Planes("http://127.0.0.1:8000"),
        "model string",
        timeout=10.0,
        retry=retry,
        show_values=False,  # errors do not show the row
    )
    print([row["model"] for row in found.collect()])
    spark.stop()


if __name__ == "__main__":
    main()
