"""Spark for the demo: a local session, and Ctrl-C at any moment, even while Spark starts."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path

from pyspark.sql import SparkSession
from rich.console import Console

__all__ = ["interruptible", "session"]


def interruptible(work: Callable[[], int], console: Console, farewell: str) -> int:
    """Call `work` in a thread, because Py4J breaks if Ctrl-C interrupts a call into the JVM.

    Args:
        work: The function. It may print to the console.
        console: The console.
        farewell: What to print after Ctrl-C. This process prints nothing after it.

    Raises:
        KeyboardInterrupt: After Ctrl-C, when the processes that `work` started have ended. Its thread may still run.
        Exception: `work` raised it.
    """
    outcome: Future[int] = Future()

    def run() -> None:
        try:
            outcome.set_result(work())
        except BaseException as error:  # noqa: BLE001 - the main thread raises it again
            outcome.set_exception(error)

    threading.Thread(target=run, name="demo", daemon=True).start()
    try:
        return outcome.result()
    except KeyboardInterrupt:
        console.show_cursor()
        console.print(f"\n[yellow]{farewell}[/]")
        _silence()
        _end_children()
        raise


def _silence() -> None:
    """Print nothing more: Py4J and PySpark would report at length that the JVM has ended."""
    sys.stdout.flush()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)


def _end_children() -> None:
    """End the processes of this one. PySpark returns no handle of a JVM that is still starting.

    Without /proc, the JVM ends soon after this process: when it has started and finds its standard input closed.
    """
    children = [int(pid) for path in Path("/proc/self/task").glob("*/children") for pid in path.read_text().split()]
    for pid in children:
        os.kill(pid, signal.SIGTERM)
    for pid in children:
        with suppress(ChildProcessError):  # another thread has waited for it
            os.waitpid(pid, 0)


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
        .config("spark.sql.streaming.numRecentProgressUpdates", "1000")
        .getOrCreate()
    )
    try:
        yield spark
    finally:
        spark.stop()
