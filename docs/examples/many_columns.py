"""Looks up each address of three columns once, and writes each call into calls.txt."""

from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from udfs import unordered_wait

CALLS = Path("calls.txt").absolute()


async def country(address):  # stands in for a request
    with CALLS.open("a") as calls:
        calls.write(f"{address}\n")
    return ["CH", "IT", "JP"][int(address.rpartition(".")[2]) % 3]


def with_countries(df, columns):
    every = df.select(F.explode(F.array(*columns)).alias("address"))
    distinct = every.distinct().coalesce(2)  # as many tasks as the job has slots
    answers = unordered_wait(
        distinct, country, "country string", inputs=["address"], timeout=5.0
    ).cache()  # each join below reads it
    for column in columns:
        names = {"address": column, "country": f"{column}_country"}
        df = df.join(answers.withColumnsRenamed(names), column, "left")
    return df


def main():
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    orders = spark.range(120).select(
        "id",
        *(
            F.concat(F.lit("10.0.0."), (F.col("id") * step % 40).cast("string")).alias(
                name
            )
            for name, step in [("buyer", 1), ("seller", 3), ("carrier", 7)]
        ),
    )
    enriched = with_countries(orders, ["buyer", "seller", "carrier"])
    enriched.select("buyer", "buyer_country", "carrier_country").orderBy("id").show(2)
    print(
        f"{len(CALLS.read_text().splitlines())} calls for {3 * orders.count()} values"
    )
    spark.stop()


if __name__ == "__main__":
    main()
