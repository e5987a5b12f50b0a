import httpx
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

from udfs import ExponentialBackoff, ordered_wait, transient

http = httpx.AsyncClient()


async def fragile(origin):
    if origin == "JFK":
        raise ConnectionError("the service is down")
    return 39.0


def dead_letters(flights):
    retry = ExponentialBackoff(2, initial=0.01, maximum=0.1, retry_on=transient)
    checked = ordered_wait(
        flights, fragile, "temp double", timeout=5.0, retry=retry, on_error="column"
    ).cache()

    good = checked.where("error is null").drop("error")
    dead = checked.where("error is not null")
    print(good.count())
    print(
        dead.select("origin", "error.type", "error.message", "error.attempts").first()
    )


def failed_job(flights):
    try:
        ordered_wait(flights, fragile, "temp double", timeout=5.0).collect()
    except PythonException as error:
        print("\n".join(str(error).strip().splitlines()[:3]))


async def captures_a_client(origin):
    response = await http.get(f"http://127.0.0.1:8000/weather/{origin}/now")
    return response.json()["temp"]


def refused(flights):
    try:
        ordered_wait(flights, captures_a_client, "temp double", timeout=5.0)
    except TypeError as error:
        print(str(error).partition(" to the workers")[0])


def main():
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    flights = spark.createDataFrame([("EWR",), ("JFK",), ("LGA",)], "origin string")
    dead_letters(flights)
    failed_job(flights)
    refused(flights)
    spark.stop()


if __name__ == "__main__":
    main()
