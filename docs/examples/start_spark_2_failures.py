"""Start `python -m udfs.demo.service --port 8000` first."""

import httpx
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

from udfs import AsyncFunction, ExponentialBackoff, transient, unordered_wait
from udfs.http import client

SERVICE = "http://127.0.0.1:8000"


class Lookup(AsyncFunction):
    async def open(self):
        self.http = client(base_url=SERVICE)

    async def invoke(self, path):
        response = await self.http.get(path)
        return response.raise_for_status().text  # raises for 404, 503 and so on

    async def close(self):
        await self.http.aclose()


def break_it(paths):
    try:
        unordered_wait(paths, Lookup(), "found string", timeout=30.0).collect()
    except PythonException as error:
        print("\n".join(str(error).strip().splitlines()[:3]))


def retry_it(paths):
    retry = ExponentialBackoff(3, initial=0.1, maximum=1.0, retry_on=transient)
    found = unordered_wait(
        paths, Lookup(), "found string", timeout=30.0, retry=retry, metadata="how"
    )
    found.orderBy("path").select("path", "found", "how.attempts").show()


def read_the_dead_letters(paths):
    retry = ExponentialBackoff(3, initial=0.1, maximum=1.0, retry_on=transient)
    checked = unordered_wait(
        paths, Lookup(), "found string", timeout=30.0, retry=retry, on_error="column"
    ).cache()
    print(checked.where("error is null").count(), "rows have a result")
    dead = checked.where("error is not null").orderBy("path")
    for row in dead.select("path", "error.type", "error.attempts").collect():
        print(row)


def main():
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    flaky = spark.createDataFrame([("/flaky/a",), ("/flaky/b",)], "path string")
    gone = spark.createDataFrame(
        [("/planes/N14228",), ("/planes/unknown",)], "path string"
    )
    for step, paths in [
        (break_it, flaky.limit(1)),
        (retry_it, flaky),
        (read_the_dead_letters, flaky.union(gone)),
    ]:
        httpx.post(f"{SERVICE}/reset")  # the service forgets earlier calls
        step(paths)
    spark.stop()


if __name__ == "__main__":
    main()
