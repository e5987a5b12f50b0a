"""The progress in a remote session: its tasks while they run, and a line at the end."""

from __future__ import annotations

import io
import re
import threading
import time
from typing import Any

from pyspark.sql import SparkSession
from rich.console import Console

from udfs import ordered_wait
from udfs.progress import progress

PATIENCE = 60.0  # seconds that only a hang takes


def test_a_terminal_shows_the_tasks_while_they_run(spark: SparkSession, service: Any) -> None:
    """The two tasks wait for answers, which come when the line has told of them."""
    console = Console(file=io.StringIO(), force_terminal=True, width=200, color_system=None, legacy_windows=False)
    assert isinstance(console.file, io.StringIO)
    release = service.hold()
    client = service.client

    async def ask(id: int) -> str:  # noqa: A002 - the column is called so
        return await client.ask(id)

    df = ordered_wait(spark.range(0, 10, 1, 2), ask, "answer string", timeout=PATIENCE)
    with progress(spark, description="asking", console=console):
        thread = threading.Thread(target=df.collect)
        thread.start()
        deadline = time.monotonic() + PATIENCE
        while "asking: 0 of 2 tasks  0:" not in console.file.getvalue():
            assert time.monotonic() < deadline, console.file.getvalue()[-300:]
            time.sleep(0.05)
        release()
        thread.join(PATIENCE)
    last = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", console.file.getvalue()).splitlines()[-1]
    assert re.fullmatch(r"asking: \d of 2 tasks in [\d,.]+ s", last)
