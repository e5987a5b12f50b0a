from pyspark.errors import PythonException
from pyspark.sql import Observation, SparkSession

from udfs import Memo, unordered_wait

memo = Memo("prices", max_age=30 * 86_400.0)


async def price(item):
    if item == 77 and price.has_outage:
        raise ConnectionError("the service is down")
    return item / 100


def job(items):
    calls = Observation()
    priced = unordered_wait(
        items, price, "price double", timeout=5.0, memo=memo, metrics=calls
    )
    priced.write.mode("overwrite").parquet("priced")
    return calls.get["calls"]


def main():
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    items = spark.range(100).withColumnRenamed("id", "item")
    price.has_outage = True
    try:
        job(items)
    except PythonException:
        print("the job failed")

    paid = memo.read(spark).count()
    print("it paid for more than nothing:", paid > 0)

    price.has_outage = False
    print("answers of the first run and calls of the second:", paid + job(items))
    print("calls of the third:", job(items))
    spark.stop()


if __name__ == "__main__":
    main()
