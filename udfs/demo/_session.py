"""A local Spark session for the demo."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession


@contextmanager
def session() -> Iterator[SparkSession]:
    """A local Spark session with two cores, which logs nothing. Its workers run this Python.

    The JVM uses its fast compiler only, and one thread for its garbage: the job ends before the work of the optimizing
    compiler would pay off, and both cores are busy.
    """
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    log = Path(__file__).with_name("log4j2.properties")
    java_options = f"-Dlog4j2.configurationFile={log.as_uri()} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    spark = (
        SparkSession.builder.master("local[2]")
        .appName("trio-asyncio-io demo")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.extraJavaOptions", java_options)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "4")
        .getOrCreate()
    )
    try:
        yield spark
    finally:
        spark.stop()
