"""Beside it is `lookups.py`, which this script writes, so that it is complete."""

import sys
from pathlib import Path

from pyspark.sql import SparkSession

from udfs import unordered_wait

MODULE = Path("lookups.py").resolve()
MODULE.write_text("async def country(ip):\n    return 'NL'\n")

if __name__ == "__main__":
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    spark.sparkContext.addPyFile(str(MODULE))  # each worker gets a copy
    sys.path.insert(0, str(MODULE.parent))  # a notebook's folder is on the path already
    from lookups import country

    visits = spark.createDataFrame([("192.0.2.7",)], "ip string")
    print(unordered_wait(visits, country, "country string", timeout=5.0).collect())
    spark.stop()
