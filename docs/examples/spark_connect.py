"""Needs a Spark Connect server: SPARK_REMOTE=sc://127.0.0.1:15002"""

import tempfile
from pathlib import Path
from zipfile import ZipFile

import trio
from pyspark.sql import SparkSession

import trio_asyncio_io
import udfs
from udfs import ordered_wait


async def weather(origin):
    await trio.sleep(0.01)  # call a service here
    return 39.0


def enrich(flights):
    enriched = ordered_wait(
        flights, weather, "temp double", timeout=5.0, cluster_capacity=50
    )
    print([row.temp for row in enriched.collect()])


def send_the_packages(spark):
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder, "packages.zip")
        with ZipFile(archive, "w") as packages:
            for package in (trio_asyncio_io, udfs):
                home = Path(package.__file__).parent
                for source in home.rglob("*.py"):
                    packages.write(source, source.relative_to(home.parent))
        spark.addArtifacts(str(archive), pyfile=True)


def main():
    spark = SparkSession.builder.getOrCreate()  # the server of SPARK_REMOTE
    send_the_packages(spark)
    flights = spark.createDataFrame([("EWR",), ("JFK",)], "origin string")
    enrich(flights)
    spark.stop()


if __name__ == "__main__":
    main()
