"""The workers' Python, in processes of their own: PYSPARK_PYTHON is unset, or set to one that lacks the packages."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it

from tests.support import PATIENCE

pytestmark = pytest.mark.timeout(3 * PATIENCE)

ROOT = Path(__file__).parents[3]

EVERY_DOOR = """
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it

from udfs import CarryOver, async_pandas_udf, ordered_wait, unordered_wait
from udfs.http_columns import http_get, register_http


async def same(id):
    return id


def main():
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .config(
            "spark.sql.streaming.stateStore.providerClass",
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
        )
        .getOrCreate()
    )
    numbers = spark.range(1)
    print(ordered_wait(numbers, same, "result long", timeout=5.0).collect())
    if hasattr(F, "arrow_udf"):
        columns(spark, numbers)
    carry_over(spark, numbers)
    spark.stop()


def columns(spark, numbers):
    print(numbers.select(async_pandas_udf(same, "long", timeout=5.0)("id").alias("result")).collect())
    print(numbers.select(http_get(F.lit("http://"))["error"]["type"].alias("result")).collect())
    register_http(spark)
    print(spark.sql("select http_get('http://').error.type as result").collect())


def carry_over(spark, numbers):
    numbers.write.json("numbers")
    stream = spark.readStream.schema("id long").json("numbers")
    carried = unordered_wait(stream, same, "result long", timeout=5.0, carry_over=CarryOver())
    query = carried.writeStream.format("memory").queryName("carried").trigger(processingTime="1 second").start()
    while not spark.table("carried").count():
        assert not query.awaitTermination(0.1)
    query.stop()
    print(spark.table("carried").collect())


if __name__ == "__main__":
    main()
"""


def run(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """The script in a process where the `python3` on PATH is none that Spark could use."""
    python3 = folder / "bin" / "python3"
    python3.parent.mkdir()
    python3.write_text("#!/bin/sh\nexit 1\n")
    python3.chmod(0o755)
    (folder / "script.py").write_text(EVERY_DOOR)
    (folder / "empty").mkdir()
    unset = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_HOME", "PYTHONDONTWRITEBYTECODE")
    kept = {name: value for name, value in os.environ.items() if name not in unset}
    path = {"PATH": f"{python3.parent}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, str(folder / "script.py")],
        cwd=folder / "empty",
        env=kept | path | environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def test_workers_find_the_drivers_python_whatever_is_first_on_path(tmp_path: Path) -> None:
    done = run(tmp_path)
    columns = ["[Row(result=0)]", *["[Row(result='UnsupportedProtocol')]"] * 2] if hasattr(F, "arrow_udf") else []
    expected = ["[Row(id=0, result=0)]", *columns, "[Row(id=0, result=0)]"]
    assert done.stdout.splitlines() == expected, done.stderr


def test_a_python_without_the_packages_is_an_error_that_says_what_to_set(tmp_path: Path) -> None:
    venv.create(tmp_path / "bare")
    bare = tmp_path / "bare" / "bin" / "python"
    done = run(tmp_path, PYSPARK_PYTHON=str(bare))
    assert f"the Python of Spark's workers, {bare}, has no module pyarrow. Before Spark starts, set" in done.stderr
