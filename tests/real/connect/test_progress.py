"""Progress in a remote session: its tasks while they run, and a line at the end."""

from __future__ import annotations

import io
import re
import threading

from pyspark.sql import SparkSession
from rich.console import Console

from tests.service import Service
from tests.support import PATIENCE, wait_until
from udfs import ordered_wait
from udfs.progress import progress


def test_a_terminal_shows_the_tasks_while_they_run(spark: SparkSession, service: Service) -> None:
    """The two tasks wait for answers. The service answers once the line shows the tasks."""
    console = Console(file=io.StringIO(), force_terminal=True, width=200, color_system=None, legacy_windows=False)
    assert isinstance(console.file, io.StringIO)
    release = service.hold()
    df = ordered_wait(spark.range(0, 10, 1, 2), service.client.ask, "answer string", inputs=["id"], timeout=PATIENCE)
    with progress(spark, description="asking", console=console):
        thread = threading.Thread(target=df.collect)
        thread.start()
        shown = console.file.getvalue
        wait_until(lambda: "asking: 0 of 2 tasks  0:" in shown(), lambda: shown()[-300:])
        release()
        thread.join(PATIENCE)
    last = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", console.file.getvalue()).splitlines()[-1]
    assert re.fullmatch(r"asking: \d of 2 tasks in [\d,.]+ s", last)
