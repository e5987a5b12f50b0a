import asyncio

import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql.functions import pandas_udf


async def call(city):
    await asyncio.sleep(0.01)  # in place of a call to a service
    return f"{city}: fine"


@pandas_udf("string")
def weather(cities: pd.Series) -> pd.Series:
    async def batch():
        return await asyncio.gather(*map(call, cities))

    return pd.Series(asyncio.run(batch()))


def main():
    spark = SparkSession.builder.master("local[1]").getOrCreate()
    cities = spark.createDataFrame([("Oslo",), ("Rome",)], "city string")
    cities.select("city", weather("city").alias("weather")).show()
    spark.stop()


if __name__ == "__main__":
    main()
