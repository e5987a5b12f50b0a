import asyncio
import os
import sys

import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql.functions import pandas_udf
from pyspark.sql.types import StringType

os.environ["PYSPARK_PYTHON"] = sys.executable  # or the workers run python3 on PATH


async def call(city):
    await asyncio.sleep(0.01)  # in place of a call to a service
    return f"{city}: fine"


@pandas_udf(StringType())
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
