from pyspark.sql import SparkSession

from udfs import FixedDelay, ordered_wait, transient

reachable = {"EWR": ["ORD", "SFO"], "JFK": ["LAX"]}


async def connections(origin):
    return reachable.get(origin, [])


def left_join(flights):
    joined = ordered_wait(
        flights,
        connections,
        "dest string",
        timeout=5.0,
        flatten="outer",  # LGA has no connections, and its row stays
        skip_nulls=True,  # a row without an origin makes no call
        metadata="call",
    )
    for row in joined.collect():
        print(row.origin, row.dest, row.call.attempts)


async def late(origin):
    late.asked = getattr(late, "asked", 0) + 1
    return reachable[origin] if late.asked > 2 else []


def until_found(flights):
    retry = FixedDelay(
        5, 0.1, retry_on=transient, retry_on_result=lambda found: not found
    )
    joined = ordered_wait(
        flights.where("origin = 'JFK'"),
        late,
        "dest string",
        timeout=5.0,
        flatten=True,
        retry=retry,
        metadata="call",
    )
    print([(row.dest, row.call.attempts) for row in joined.collect()])


def main():
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    flights = spark.createDataFrame(
        [("EWR",), ("LGA",), (None,), ("JFK",)], "origin string"
    )
    left_join(flights)
    until_found(flights)
    spark.stop()


if __name__ == "__main__":
    main()
