from pyspark.sql import Observation, SparkSession
from pyspark.sql import functions as F

from udfs import ClusterBudget, unordered_wait


async def country(ip):
    return "NL" if ip.endswith("7") else "BE"  # call a service here


def one_day(visits):
    calls = Observation()
    found = unordered_wait(
        visits,
        country,
        "country string",
        timeout=5.0,
        cluster_budget=ClusterBudget(15.0),  # the free calls of a day
        memo="countries",  # the answers of all days
        on_error="column",  # a row beyond the quota has a BudgetError
        metrics=calls,
    )
    done = found.where("error is null").agg(F.count("*")).first()[0]
    print(calls.get["calls"], "calls,", done, "of 40 rows are done")


def main():
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    visits = spark.range(40).selectExpr("concat('192.0.2.', id) as ip")
    for _ in range(4):  # in your job: one run a day
        one_day(visits)
    spark.stop()


if __name__ == "__main__":
    main()
