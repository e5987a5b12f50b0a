"""PySpark's daemon, which has imported the libraries before it forks a worker: each would import them again.

Spark starts it as `python -m preloading_daemon`, with `spark.python.daemon.module`. Its workers do not see for how long
they wait for a processor: on a busy machine, that would be the verdict on any job.
"""

from __future__ import annotations

import pandas as pd  # noqa: F401 - as the next two: for the workers
import pyarrow as pa  # noqa: F401
import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

from trio_asyncio_io._operator import tasks
from udfs._trio_thread import task_clock


def no_wait(_: int | None = None) -> float:
    return 0.0


if __name__ == "__main__":
    tasks.cpu_wait = task_clock.cpu_wait = no_wait
    manager()
