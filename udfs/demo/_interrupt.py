"""The interrupt: Ctrl-C ends the job, and never reaches into the middle of a conversation with the JVM."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import TypeVar

from pyspark import SparkContext

__all__ = ["interruptible"]

T = TypeVar("T")
LOOK_SECONDS = 0.2


def interruptible(work: Callable[[], T]) -> T:
    """What `work` returns; it runs in a thread, while the main thread waits for Ctrl-C.

    A signal interrupts whatever the main thread does, and Py4J does not survive that in the middle of a call. So the
    main thread does nothing but wait. At a Ctrl-C it cancels the jobs of the session until `work` has ended.

    Raises:
        Exception: That of `work`.
        KeyboardInterrupt: Ctrl-C, and `work` has ended.
    """
    interrupted, ended = threading.Event(), threading.Event()
    outcome: list[T] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(work())
        except BaseException as error:  # noqa: BLE001 - raised again in the main thread
            failure.append(error)
        ended.set()

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        interrupted.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a second one does not wait

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        threading.Thread(target=run, name="demo", daemon=True).start()
        while not ended.wait(LOOK_SECONDS):
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
    """Cancel what runs; between two jobs there is nothing, so this is called again until `work` notices."""
    context = SparkContext._active_spark_context  # noqa: SLF001 - no public name gives it to another thread
    if context is not None:
        try:
            context.setLogLevel("OFF")  # what is cancelled tells so at length
            context.cancelAllJobs()
        except Exception:  # noqa: BLE001 - the session is just being stopped
            return
