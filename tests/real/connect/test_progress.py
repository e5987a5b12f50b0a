"""The progress in a remote session: its tasks while they run, and a line at the end."""

from __future__ import annotations

import io
import re
import threading
from typing import Any

from pyspark.sql import SparkSession
from rich.console import Console

from tests.support import PATIENCE, wait_until
from udfs import ordered_wait
from udfs.progress import progress


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
        shown = console.file.getvalue
        wait_until(lambda: "asking: 0 of 2 tasks  0:" in shown(), lambda: shown()[-300:])
        release()
        thread.join(PATIENCE)
    last = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", console.file.getvalue()).splitlines()[-1]
    assert re.fullmatch(r"asking: \d of 2 tasks in [\d,.]+ s", last)
