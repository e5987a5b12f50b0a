"""PySpark's daemon, which has imported the libraries before it forks a worker: each would import them again.

Spark starts it as `python -m preloading_daemon`, with `spark.python.daemon.module`. A worker imports only the project.
"""

from __future__ import annotations

import pandas as pd  # noqa: F401 - as the next ones: for the workers
import pyarrow as pa  # noqa: F401
import pyspark.worker  # noqa: F401
import trio  # noqa: F401
from pyspark.daemon import manager

if __name__ == "__main__":
    manager()
