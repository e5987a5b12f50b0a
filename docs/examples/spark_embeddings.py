import numpy as np
from pyspark.sql import SparkSession

from udfs import unordered_wait


async def embed(text):  # a list of texts; call a model here
    return np.array([[each.count(vowel) for vowel in "aeiou"] for each in text])


def main():
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    reviews = spark.createDataFrame([("good",), ("bad",), ("too loud",)], "text string")
    embedded = unordered_wait(
        reviews, embed, "vector array<float>", group=100, timeout=30.0, memo="vectors"
    )
    for row in sorted(embedded.collect()):
        print(row.text, row.vector)
    spark.stop()


if __name__ == "__main__":
    main()
