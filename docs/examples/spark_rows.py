import trio
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from udfs import keyed_wait, unordered_wait


async def weather(origin, time_hour):
    await trio.sleep(0.01)  # call a service here
    return {"temp": 39.0, "wind": 10.4}


def whole_rows(flights):
    enriched = unordered_wait(
        flights,
        weather,
        "temp double, wind double",  # the new columns
        inputs=["origin", "time_hour"],  # the arguments of the function
        capacity=100,
        timeout=5.0,
    )
    print(enriched.columns)
    print(sorted(tuple(row) for row in enriched.select("origin", "temp").collect()))


async def post(account, number):
    await trio.sleep(0.01)
    return f"{account}'s payment {number}"


def in_order_for_each_key(spark):
    payments = spark.createDataFrame(
        [("ann", 1), ("bob", 1), ("ann", 2), ("ann", 3)], "account string, number int"
    )
    together = payments.repartition("account").sortWithinPartitions("number")
    posted = keyed_wait(together, post, "receipt string", key="account", timeout=5.0)
    print([row.receipt for row in posted.collect() if row.account == "ann"])


def event_time(flights):
    events = flights.withColumn("ts", F.to_timestamp("time_hour"))
    bounded = unordered_wait(
        events.coalesce(1).sortWithinPartitions("ts"),
        weather,
        "temp double, wind double",
        inputs=["origin", "time_hour"],
        timeout=5.0,
        event_time="ts",
        max_out_of_orderness="5 minutes",
    )
    print([row.origin for row in bounded.collect()])


def main():
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    flights = spark.createDataFrame(
        [
            ("EWR", "2013-01-01T10:00:00Z", "N14228"),
            ("JFK", "2013-01-01T11:00:00Z", "N619AA"),
            ("LGA", "2013-01-01T12:00:00Z", None),
        ],
        "origin string, time_hour string, tailnum string",
    )
    whole_rows(flights)
    in_order_for_each_key(spark)
    event_time(flights)
    spark.stop()


if __name__ == "__main__":
    main()
