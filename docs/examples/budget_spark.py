import trio
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from trio_asyncio_io.gates import settle
from udfs import ClusterBudget, unordered_wait


def estimate(question):
    return 0.05  # dollars: what an answer costs at most


async def ask(question):
    await trio.sleep(0.01)  # call a service here
    settle(0.01)  # the price that the response reports
    return f"answer {question}"


def main():
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    budget = ClusterBudget(5.0, weight=estimate)
    answers = unordered_wait(
        spark.range(0, 1000, 1, 4).withColumnRenamed("id", "question"),
        ask,
        "answer string",
        timeout=30.0,
        cluster_budget=budget,
        on_error="column",
        metadata="how",
    )
    cost = F.sum("how.settled_weight")
    refused = F.count_if(F.col("error.type") == "BudgetError")
    spent, without = answers.select(cost, refused).first()
    print("99 % of the budget is used:", 4.95 <= spent <= 5.0)
    print("every other row has an error:", without == 1000 - round(spent / 0.01))
    spark.stop()


if __name__ == "__main__":
    main()
