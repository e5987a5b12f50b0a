from pyspark.sql import SparkSession

from udfs import Memo, unordered_wait


async def country(ip):
    return {"192.0.2.1": "NL"}.get(ip)  # call a service here


def fill(spark, memo):
    for ip in ("192.0.2.1", "192.0.2.7", "192.0.2.9"):
        visits = spark.createDataFrame([(ip,)], "ip string")
        unordered_wait(
            visits, country, "country string", timeout=5.0, memo=memo
        ).collect()


def read(spark, memo):
    answers = memo.read(spark)
    print(answers.columns)
    known = answers.select("inputs.ip", "answer", "function", "version")
    for row in sorted(known.collect()):
        print(*row)


def main():
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    memo = Memo("countries", max_age=30 * 86_400.0)
    fill(spark, memo)
    read(spark, memo)
    print(memo.compact(), "answers after the compaction")
    spark.stop()


if __name__ == "__main__":
    main()
