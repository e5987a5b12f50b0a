"""Asks 20 questions of each document, and pays for each document once."""

import time

import trio
from pyspark.sql import SparkSession

from trio_asyncio_io.gates import LeaderFirst, PerKey
from udfs import unordered_wait

CACHED_UNTIL = {}  # of the stand-in, in each Python worker


async def ask(document, question):  # stands in for a request
    is_cached = time.monotonic() < CACHED_UNTIL.get(document, 0)
    await trio.sleep(0.2)
    CACHED_UNTIL[document] = time.monotonic() + 300
    return f"the answer to {question}", "read from the cache" if is_cached else "full"


def document_of(document, question):
    return document


def main():
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    rows = spark.range(200).selectExpr(
        "concat('document ', id % 10) AS document",
        "concat('question ', id) AS question",
    )
    # All rows of a document in one task, one after another
    sorted_rows = rows.repartition(2, "document").sortWithinPartitions("document")
    answers = unordered_wait(
        sorted_rows,
        ask,
        "answer string, price string",
        timeout=60.0,
        capacity=20,
        gate=PerKey(LeaderFirst(), key=document_of),
    )
    answers.groupBy("price").count().orderBy("price").show()
    spark.stop()


if __name__ == "__main__":
    main()
