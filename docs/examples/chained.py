from pyspark.sql import SparkSession

from udfs import ordered_wait


async def locate(airport):  # call a geocoder here
    return {"lat": {"EWR": 40.7, "JFK": 40.6}[airport], "lon": -74.0}


async def weather(lat, lon):  # call a weather service here
    if lat < 40.65:
        raise ConnectionError("the service is down")
    return 39.0


async def sentence(airport, temp):  # call an LLM here
    return f"{airport}: {temp} degrees"


def enrich(flights):
    options = {"timeout": 5.0, "skip_nulls": True, "on_error": "column"}
    located = ordered_wait(
        flights, locate, "lat double, lon double", error="not_located", **options
    )
    measured = ordered_wait(
        located, weather, "temp double", error="no_weather", **options
    )
    return ordered_wait(measured, sentence, "text string", error="no_text", **options)


def main():
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    flights = spark.createDataFrame([("EWR",), ("JFK",), ("XXX",)], "airport string")
    columns = ["airport", "text", "not_located.type", "no_weather.type", "no_text.type"]
    for row in enrich(flights).select(*columns).orderBy("airport").collect():
        print(list(row))
    spark.stop()


if __name__ == "__main__":
    main()
