import trio
from pyspark.sql import Observation, SparkSession

from udfs import ordered_wait, rehearse


async def ask(question):
    await trio.sleep(0.1)  # call a service here
    return f"answer {question}"


def pay_once(questions):
    job = questions, ask, "answer string"
    forecast = rehearse(*job, sample=60, timeout=10.0, capacity=[5, 20], memo="answers")
    print(forecast.assumptions[0])  # print(forecast) also has the times

    calls = Observation()
    answers = ordered_wait(*job, metrics=calls, **forecast.best)
    answers.write.format("noop").mode("overwrite").save()
    print(calls.get["calls"], "calls for", calls.get["rows"], "rows")


if __name__ == "__main__":
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    pay_once(spark.range(0, 1000, 1, 4).withColumnRenamed("id", "question"))
