"""Ctrl-C: cancels the Spark jobs without interrupting a call into the JVM."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import TypeVar

from pyspark import SparkContext

__all__ = ["interruptible"]

T = TypeVar("T")
POLL_SECONDS = 0.2


def interruptible(work: Callable[[], T]) -> T:
    """Run `work` in a thread and cancel the session's jobs on Ctrl-C.

    A signal interrupts the main thread, and Py4J breaks if that happens during a call into the JVM. So the main thread
    only waits. After Ctrl-C it cancels jobs until `work` has ended. A second Ctrl-C does not wait for that.

    Returns:
        The result of `work`.

    Raises:
        Exception: `work` raised it.
        KeyboardInterrupt: After Ctrl-C, when `work` has ended.
    """
    interrupted, ended = threading.Event(), threading.Event()
    outcome: list[T] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(work())
        except BaseException as error:  # noqa: BLE001 - the main thread raises it again
            failure.append(error)
        ended.set()

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        interrupted.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)  # for a second Ctrl-C

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        threading.Thread(target=run, name="demo", daemon=True).start()
        while not ended.wait(POLL_SECONDS):
            if interrupted.is_set():
                _cancel_jobs()
    finally:
        signal.signal(signal.SIGINT, before)
    if interrupted.is_set():
        raise KeyboardInterrupt
    if failure:
        raise failure[0]
    return outcome[0]


def _cancel_jobs() -> None:
    """Cancel the running jobs. Between two jobs there are none, so the caller repeats this until `work` has ended."""
    context = SparkContext._active_spark_context  # noqa: SLF001 - no public function returns it in another thread
    if context is not None:
        try:
            context.setLogLevel("OFF")  # Spark logs each cancelled task at length
            context.cancelAllJobs()
        except Exception:  # noqa: BLE001 - the session is being stopped
            return
