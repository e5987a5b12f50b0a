"""The demo as a user runs it: a process of its own, with real Spark, a real service and a real Ctrl-C."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pyarrow.parquet as pq
import pytest

from tests.support import PATIENCE, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(3 * PATIENCE)]


def demo(*arguments: str, cwd: Path) -> subprocess.Popen[str]:
    root = str(Path(__file__).parents[3])
    environment = {**os.environ, "PYTHONPATH": root, "COLUMNS": "100", "PYTHONUNBUFFERED": "1"}
    return subprocess.Popen(
        [sys.executable, "-m", "udfs.demo", *arguments],
        cwd=cwd,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def test_it_enriches_every_flight_checks_itself_and_tells_what_it_did(tmp_path: Path) -> None:
    process = demo("--rows", "600", "--seed", "3", "--mode", "ordered", cwd=tmp_path)
    output, _ = process.communicate()
    assert process.returncode == 0, output
    assert "every flight came out once, and its weather is the one in the source data" in output
    for word in ("delay by the weather", "requests", "saved", "retries", "misses", "errors", "Little's law", "by hand"):
        assert word in output, output
    table = pq.read_table(tmp_path / "output" / "flights")
    assert table.num_rows == 600
    assert {"temp", "wind_speed", "manufacturer", "error", "dep_delay", "tailnum"} <= set(table.column_names)
    assert table.column("error").null_count == 600
    assert table.column("temp").null_count < 60


def test_ctrl_c_stops_it_and_leaves_no_process_behind(tmp_path: Path) -> None:
    process = demo(cwd=tmp_path)
    assert process.stdout is not None
    port = next(_found(process.stdout, r"127\.0\.0\.1:(\d+)"))
    wait_until(lambda: _asked(port))
    family = _descendants(process.pid)
    assert len(family) >= 2, "the service and Spark's JVM"
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, output
    assert "stopped" in output
    assert "Traceback" not in output, output
    assert "ERROR" not in output, output
    wait_until(lambda: not [pid for pid in family if _is_alive(pid)])


def test_a_stream_that_was_stopped_goes_on_where_it_was_and_loses_nothing(tmp_path: Path) -> None:
    stream = ("--stream", "--rows", "6000", "--output", "stream")
    process = demo(*stream, cwd=tmp_path)
    assert process.stdout is not None
    next(_found(process.stdout, "(micro-batch 0 )"))
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, output
    assert "run the same again, and it goes on where it was stopped" in output
    assert "Traceback" not in output, output
    process = demo(*stream, cwd=tmp_path)
    output, _ = process.communicate()
    assert process.returncode == 0, output
    assert "going on where the last run was stopped" in output
    assert "micro-batch 0 " not in output, output
    assert "every flight came out once, and its weather is the one in the source data" in output
    assert len(list((tmp_path / "stream" / "incoming").glob("*.csv"))) == 7


def test_an_output_that_exists_is_refused_before_anything_is_started(tmp_path: Path) -> None:
    process = demo("--output", str(tmp_path), cwd=tmp_path)
    output, _ = process.communicate()
    assert process.returncode == 1
    assert output == f"{tmp_path} exists already: remove it, or give another --output\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rows", "0"], "--rows: must be at least 1, got 0"),
        (["--capacity", "-3"], "--capacity: must be at least 1, got -3"),
        (["--timeout", "nan"], "--timeout: must be seconds above 0, got nan"),
        (["--mode", "sideways"], "--mode: invalid choice: 'sideways'"),
    ],
)
def test_a_bad_option_is_named(tmp_path: Path, arguments: list[str], message: str) -> None:
    process = demo(*arguments, cwd=tmp_path)
    output, _ = process.communicate()
    assert process.returncode == 2
    assert message in output


def _found(lines: Iterator[str], pattern: str) -> Iterator[str]:
    for line in lines:
        if match := re.search(pattern, line):
            yield match[1]


def _asked(port: str) -> bool:
    with urlopen(f"http://127.0.0.1:{port}/stats") as answer:
        return b'"requests": 0' not in answer.read()


def _descendants(pid: int) -> list[int]:
    threads = Path(f"/proc/{pid}/task").glob("*/children")
    children = [int(child) for thread in threads for child in thread.read_text().split()]
    return [*children, *(each for child in children for each in _descendants(child))]


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
