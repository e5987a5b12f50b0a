from pyspark.sql import SparkSession

from udfs import Memo, unordered_wait


async def weather(city):
    return {"temp": 20.5, "wind": 3.0, "rain": 0.0}  # call a service here


async def first_version(city):
    return {"temp": 20.5, "wind": 3.0}


def pay(spark, memo):
    cities = spark.createDataFrame([("Delft",), ("Leiden",)], "city string")
    unordered_wait(
        cities, first_version, "temp double, wind double", timeout=5.0, memo=memo
    ).collect()


def add(spark, memo):
    elsewhere = spark.createDataFrame([("Utrecht", 18.0)], "city string, temp double")
    answers = elsewhere.selectExpr(
        "struct(city) AS inputs",
        "struct(temp) AS answer",
        "timestamp'2026-01-01' AS answered_at",
    )
    print(memo.add(answers), "added")


def rename_and_widen(spark):
    towns = ["Delft", "Leiden", "Utrecht", "Gouda"]
    df = spark.createDataFrame([(town,) for town in towns], "town string")
    memo = Memo("weather", name="weather", renamed={"city": "town"})
    schema = "temp double, wind double, rain double"
    enriched = unordered_wait(
        df, weather, schema, inputs=["town"], timeout=5.0, memo=memo, metadata="how"
    )
    columns = "town", "temp", "wind", "rain", "how.cached"
    for row in sorted(enriched.select(*columns).collect()):
        print(*row)


def main():
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    pay(spark, Memo("weather", name="weather"))
    add(spark, Memo("weather"))
    rename_and_widen(spark)
    spark.stop()


if __name__ == "__main__":
    main()
