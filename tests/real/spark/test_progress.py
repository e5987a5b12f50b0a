"""Progress of a session's tasks and micro-batches on a terminal and in a log."""

from __future__ import annotations

import io
import re
import threading
from pathlib import Path

import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession
from rich.console import Console

from tests.service import Service
from tests.support import PATIENCE, wait_until
from udfs import async_pandas_udf, ordered_wait, unordered_wait
from udfs.progress import progress


async def weather(id: int) -> int:  # noqa: A002 - the name of the column
    return id


def terminal() -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=200, color_system=None, legacy_windows=False)


def written(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def wait_until_shown(console: Console, text: str) -> None:
    wait_until(lambda: text in written(console), lambda: written(console)[-300:])


@pytest.mark.thorough
def test_a_terminal_shows_the_tasks_while_they_run(spark: SparkSession, service: Service) -> None:
    """The two tasks wait for answers. The service answers once the line shows that they run."""
    console = terminal()
    release = service.hold()
    df = ordered_wait(spark.range(0, 10, 1, 2), service.client.ask, "answer string", inputs=["id"], timeout=PATIENCE)
    with progress(spark, description="asking", console=console):
        thread = threading.Thread(target=df.collect)
        thread.start()
        wait_until_shown(console, "asking: 0 of 2 tasks  2 running  0:")
        release()
        thread.join(PATIENCE)
    last = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", written(console)).splitlines()[-1]
    assert re.fullmatch(r"asking: 2 of 2 tasks in [\d,.]+ m?s", last)


@pytest.mark.thorough
def test_a_log_ends_with_a_line_also_after_a_failure(spark: SparkSession) -> None:
    console = Console(file=io.StringIO(), width=40)

    async def fail(id: int) -> str:  # noqa: A002 - the name of the column
        raise LookupError(f"no row {id}")

    df = ordered_wait(spark.range(0, 10, 1, 1), fail, "answer string", timeout=PATIENCE)
    with pytest.raises(PythonException, match="no row 0"), progress(console=console):
        df.collect()
    assert re.fullmatch(r"0 of 1 tasks, 1 failed in [\d,.]+ m?s\n", written(console))


def test_a_stream_shows_the_totals_of_its_last_micro_batch(spark: SparkSession, tmp_path: Path) -> None:
    console = terminal()

    async def double(id: int) -> int:  # noqa: A002 - the name of the column
        return 2 * id

    spark.range(0, 20, 1, 1).write.parquet(str(tmp_path / "in"))
    stream = spark.readStream.schema("id long").parquet(str(tmp_path / "in"))
    df = unordered_wait(stream, double, "twice long", timeout=PATIENCE, metrics="doubling")
    query = df.writeStream.format("memory").queryName("shown").start()
    with progress(spark, console=console):
        wait_until_shown(console, "shown, micro-batch 0: 20 rows, 20 calls, 0 retried")
        query.stop()
    assert "; shown, micro-batch 0: 20 rows, 20 calls" in written(console).splitlines()[-1]


def test_the_plan_names_the_function(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    rows = unordered_wait(spark.range(3), weather, "answer long", timeout=PATIENCE)
    rows.select(async_pandas_udf(weather, "long", timeout=PATIENCE)("id")).explain()
    plan = capsys.readouterr().out
    assert re.search(r"MapInArrow weather\(id", plan)
    assert re.search(r"ArrowEvalPython \[weather\(id", plan)
