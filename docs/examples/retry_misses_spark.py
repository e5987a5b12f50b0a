import time

from pyspark.sql import SparkSession

from trio_asyncio_io import transient
from udfs import AsyncFunction, FixedDelay, unordered_wait


class Profile(AsyncFunction):
    async def open(self):  # once per Python worker process
        self.arrives = time.monotonic() + 3.0

    async def invoke(self, user):  # your lookup: None while there is no profile
        is_new = user < 10
        return None if is_new and time.monotonic() < self.arrives else f"user {user}"


def main():
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    users = spark.range(100).withColumnRenamed("id", "user")
    out = unordered_wait(
        users,
        Profile(),
        "found string",
        capacity=2,  # the calls at once in each task
        timeout=60.0,
        retry=FixedDelay(
            60, 0.5, retry_on=transient, retry_on_result=lambda found: found is None
        ),
        on_error="null",  # a user who has no profile after 60 s
    )
    print(out.where("found is not null").count(), "found")
    spark.stop()


if __name__ == "__main__":
    main()
