"""The Python of Spark's workers where PYSPARK_PYTHON is unset, or names a Python that lacks the packages."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import pyspark
import pytest

from tests.support import PATIENCE
from tests.wheel import ROOT, environment_of_a_user

pytestmark = [pytest.mark.spark, pytest.mark.thorough, pytest.mark.timeout(3 * PATIENCE)]

SCRIPT = """
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from tests.streaming import ROCKSDB, STATE_STORE, PatientQuery
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
        .config(STATE_STORE, ROCKSDB)
        .getOrCreate()
    )
    numbers = spark.range(1)
    print(ordered_wait(numbers, same, "result long", timeout=5.0).collect())
    columns(spark, numbers)
    if hasattr(numbers.groupBy(), "transformWithStateInPandas"):
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
    running = PatientQuery(carried.writeStream.format("memory").queryName("carried").start)
    while not spark.table("carried").count():
        assert not running.has_ended(0.5)
    running.query.stop()
    print(spark.table("carried").collect())


if __name__ == "__main__":
    main()
"""


def run(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the script in a process where the `python3` on PATH does not work."""
    python3 = folder / "bin" / "python3"
    python3.parent.mkdir()
    python3.write_text("#!/bin/sh\nexit 1\n")
    python3.chmod(0o755)
    (folder / "script.py").write_text(SCRIPT)
    (folder / "empty").mkdir()
    path = f"{python3.parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [sys.executable, str(folder / "script.py")],
        cwd=folder / "empty",
        env=environment_of_a_user(PATH=path, PYTHONPATH=str(ROOT), **environment),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def test_workers_use_the_drivers_python_whatever_is_first_on_path(tmp_path: Path) -> None:
    done = run(tmp_path)
    columns = ["[Row(result=0)]", *["[Row(result='UnsupportedProtocol')]"] * 2]
    carried = [] if pyspark.__version__.startswith("3.5.") else ["[Row(id=0, result=0)]"]
    expected = ["[Row(id=0, result=0)]", *columns, *carried]
    assert done.stdout.splitlines() == expected, done.stderr


def test_a_python_without_the_packages_is_an_error_that_names_the_variable_to_set(tmp_path: Path) -> None:
    venv.create(tmp_path / "bare")
    bare = tmp_path / "bare" / "bin" / "python"
    done = run(tmp_path, PYSPARK_PYTHON=str(bare))
    assert f"the Python of Spark's workers, {bare}, has no module pyarrow. Before Spark starts, set" in done.stderr
