import trio
from pyspark.sql import SparkSession

from udfs import ordered_wait


class Meeting:
    """Its calls return when twelve of them run at once."""

    async def open(self):
        self.running, self.is_complete = 0, trio.Event()

    async def invoke(self, number):
        self.running += 1
        if self.running == 12:
            self.is_complete.set()
        await self.is_complete.wait()  # a barrier after each batch would block it
        return self.running


if __name__ == "__main__":
    spark = SparkSession.builder.master("local[1]").getOrCreate()
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", 4)
    rows = spark.range(12, numPartitions=1).toDF("number")
    met = ordered_wait(rows, Meeting(), "running int", timeout=60.0)
    print([row.running for row in met.collect()])
