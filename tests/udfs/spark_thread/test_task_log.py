"""The task log: one line per task, if it is enabled."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from typing import Any

import pytest

from trio_asyncio_io import FixedDelay, Statistics
from udfs._spark_thread.task_log import TaskLog, logger


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A logger without configuration, in a process without the environment variables."""
    monkeypatch.delenv("UDFS_LOG_LEVEL", raising=False)
    monkeypatch.delenv("PYSPARK_SPARK_SESSION_UUID", raising=False)
    yield
    logger.setLevel(logging.NOTSET)
    logger.handlers.clear()


NUMBERS = Statistics(emitted=1000, retried=17, failed=2, timed_out=1, cancelled=3, peak_running=100)


def test_nothing_is_logged_by_default(capsys: pytest.CaptureFixture[str]) -> None:
    TaskLog("weather").write(NUMBERS, 1019)
    assert capsys.readouterr() == ("", "")


def test_a_line_on_standard_error_summarises_the_task(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("UDFS_LOG_LEVEL", "info")
    for _ in range(2):  # one line each, and one handler for all
        TaskLog("weather").write(NUMBERS, 1019)
    seen = capsys.readouterr()
    line = (
        r"\S+ \S+ INFO udfs: weather: 1,000 outputs in [\d.]+ [mnµ]?s \([\d,]+/s\), 17 retried, 2 failed, 1 timed out, "
        r"3 cancelled, at most 100 at once, 1,019 calls\n"
    )
    assert seen.out == ""
    assert re.fullmatch(2 * line, seen.err)


def test_the_level_is_set_when_the_task_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other messages of this logger are logged while the task runs."""
    monkeypatch.setenv("UDFS_LOG_LEVEL", "ERROR")
    TaskLog("weather")
    assert logger.level == logging.ERROR


def test_an_unknown_level_is_info(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("UDFS_LOG_LEVEL", "loud")
    TaskLog("weather").write(NUMBERS, 1019)
    assert "weather: 1,000 outputs" in caplog.messages[0]


def test_spark_collects_the_line_if_its_worker_log_is_enabled(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("PYSPARK_SPARK_SESSION_UUID", "of a session")
    TaskLog("weather").write(NUMBERS, 1019)
    assert "weather: 1,000 outputs" in caplog.text
    assert not logger.handlers


def test_a_task_logs_its_line_at_its_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, settings: Any, run_task: Any
) -> None:
    monkeypatch.setenv("UDFS_LOG_LEVEL", "INFO")

    async def double(number: int) -> int:
        if number == 3:
            raise LookupError("there is no three")
        return 2 * number

    assert run_task(settings(double, on_error="null"), [1, 2, 3], [4]) == [2, 4, None, 8]
    [message] = caplog.messages
    assert message.startswith("double: 4 outputs in")
    assert "0 retried, 1 failed, 0 timed out, 0 cancelled, at most" in message


def test_each_attempt_and_each_failed_call_is_counted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, settings: Any, run_task: Any
) -> None:
    """Also calls whose results are lost because the task fails."""
    monkeypatch.setenv("UDFS_LOG_LEVEL", "INFO")

    async def fail(number: int) -> int:
        raise LookupError(f"there is no {number}")

    retry = FixedDelay(2, 0.0)
    with pytest.raises(LookupError):
        run_task(settings(fail, retry=retry, capacity=1), [1, 2])
    [message] = caplog.messages
    assert message.endswith(", 3 calls")
