"""The demo as a user runs it: with real Spark, a real service and a real Ctrl-C.

Most of the time goes into starting Spark. So one run serves several tests, and all but a batch run are left to `just
thorough`.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from urllib.request import ProxyHandler, build_opener

import pyarrow.parquet as pq
import pytest

from tests.support import PATIENCE, wait_until
from udfs.demo import __main__ as demo
from udfs.demo._spark import Job
from udfs.demo._stream import _flights_by_day

pytestmark = pytest.mark.timeout(3 * PATIENCE)

CHECKED = "Every flight came out once, and its weather matches the source data."

STREAM = ["--stream", "--rows", "900", "--output", "stream"]  # two days
BATCH = ["--days", "1", "--rows", "200", "--seed", "3", "--mode", "ordered"]
INTERRUPTED_BATCH = ["--days", "1", "--output", "interrupted"]

# PySpark's daemon writes this if Spark closes its connection to a worker that is just starting
OF_THE_DAEMON = re.compile(r"Traceback .*\n(?: +File \".*pyspark/daemon.py\".*\n)+ConnectionResetError.*\n")

ENVIRONMENT = {
    "COLUMNS": "100",
    "PYTHONPATH": str(Path(__file__).parents[3]),
    "PYTHONUNBUFFERED": "1",
    # The processes are too short-lived for an optimising compiler
    "JDK_JAVA_OPTIONS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "PYSPARK_SUBMIT_ARGS": "--conf spark.python.authenticate.socketTimeout=120s pyspark-shell",
}


@dataclass(frozen=True)
class Run:
    """A run that has ended: its output, its exit status, and the child processes that it had."""

    output: str
    status: int
    children: list[int]


def python(*arguments: str, cwd: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=cwd,
        env={**os.environ, **ENVIRONMENT},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def read_until(lines: IO[str], pattern: str) -> tuple[str, re.Match[str]]:
    """The lines up to one that matches, and the match."""
    output = ""
    for line in lines:
        output += line
        if match := re.search(pattern, line):
            return output, match
    raise AssertionError(f"no line matches {pattern!r}:\n{output}")


def interrupt(process: subprocess.Popen[str], output: str) -> Run:
    children = descendants(process.pid)
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=PATIENCE)
    return Run(OF_THE_DAEMON.sub("", output + rest), process.returncode, children)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def batch(folder: Path) -> Run:
    with python("-m", "udfs.demo", *BATCH, cwd=folder) as process:
        output, _ = process.communicate(timeout=PATIENCE)
        return Run(output, process.returncode, [])


@pytest.fixture(scope="module")
def interrupted_batch(folder: Path) -> Run:
    with python("-m", "udfs.demo", *INTERRUPTED_BATCH, cwd=folder) as process:
        assert process.stdout is not None
        output, match = read_until(process.stdout, r"127\.0\.0\.1:(\d+)")
        wait_until(lambda: requests_of(match[1]))
        return interrupt(process, output)


@pytest.fixture(scope="module")
def streams(folder: Path) -> tuple[Run, Run]:
    """A stream that Ctrl-C stops, and the same command again, to its end."""
    with python("-m", "udfs.demo", *STREAM, cwd=folder) as process:
        assert process.stdout is not None
        output, _ = read_until(process.stdout, "micro-batch 0 ")
        stopped = interrupt(process, output)
    with python("-m", "udfs.demo", *STREAM, cwd=folder) as process:
        output, _ = process.communicate(timeout=PATIENCE)
        return stopped, Run(output, process.returncode, [])


def requests_of(port: str) -> int:
    with build_opener(ProxyHandler({})).open(f"http://127.0.0.1:{port}/stats") as response:
        requests: int = json.load(response)["requests"]
        return requests


def descendants(pid: int) -> list[int]:
    threads = Path(f"/proc/{pid}/task").glob("*/children")
    children = [int(child) for thread in threads for child in thread.read_text().split()]
    return [*children, *(each for child in children for each in descendants(child))]


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.spark
def test_a_batch_run_enriches_and_checks_every_flight(batch: Run, folder: Path) -> None:
    assert batch.status == 0, batch.output
    assert CHECKED in batch.output
    table = pq.read_table(folder / "output" / "flights")
    assert table.num_rows == 200
    assert {"temp", "wind_speed", "manufacturer", "error", "dep_delay", "tailnum"} <= set(table.column_names)
    assert table.column("error").null_count == 200
    assert table.column("temp").null_count < 20


@pytest.mark.spark
def test_a_batch_run_prints_a_report(batch: Run) -> None:
    for word in ("delay by the weather", "requests", "saved", "retries", "misses", "errors", "Little's law", "by hand"):
        assert word in batch.output, batch.output


@pytest.mark.spark
@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["stream", "batch"])
def test_ctrl_c_stops_a_run_and_leaves_no_process_behind(kind: str, request: pytest.FixtureRequest) -> None:
    run = request.getfixturevalue("streams")[0] if kind == "stream" else request.getfixturevalue("interrupted_batch")
    assert run.status == 130, run.output
    assert "stopped" in run.output
    assert "Traceback" not in run.output, run.output
    assert "ERROR" not in run.output, run.output
    assert len(run.children) >= 2, "the service and Spark's JVM"
    wait_until(lambda: not [pid for pid in run.children if is_alive(pid)])


@pytest.mark.spark
@pytest.mark.thorough
def test_a_stopped_stream_is_resumed_without_loss(streams: tuple[Run, Run], folder: Path) -> None:
    stopped, run = streams
    assert "run the same command again" in stopped.output
    assert run.status == 0, run.output
    assert "Resuming the stopped stream" in run.output
    assert "micro-batch 0 " not in run.output, run.output
    assert CHECKED in run.output
    assert len(list((folder / "stream" / "incoming").glob("*.csv"))) == 2


@pytest.mark.parametrize(
    ("job", "days"),
    [
        (Job(days=1), {"2013-01-01": 2}),
        (Job(days=31), {"2013-01-01": 2, "2013-01-31": 1}),
        (Job(days=365), {"2013-01-01": 2, "2013-01-31": 1, "2013-02-01": 1, "2013-12-31": 1}),
        (Job(days=31, rows=2), {"2013-01-01": 2}),
    ],
    ids=["one day", "January", "the year", "two rows"],
)
def test_days_and_rows_limit_the_flights_of_a_stream(tmp_path: Path, job: Job, days: dict[str, int]) -> None:
    path = tmp_path / "flights.csv"
    path.write_text("year,month,day,origin\n2013,1,1,EWR\n2013,1,1,JFK\n2013,12,31,LGA\n2013,2,1,EWR\n2013,1,31,EWR\n")
    found = _flights_by_day(path, job)
    assert {day: len(lines) - 1 for day, lines in found.items()} == days
    assert list(found) == sorted(found)
    assert all(lines[0] == ["year", "month", "day", "origin"] for lines in found.values())


def test_an_existing_output_folder_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as caught:
        demo.main(["--output", str(tmp_path)])
    assert caught.value.code == f"error: {tmp_path} exists already. Remove it, or choose another --output"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rows", "0"], "--rows: must be at least 1, got 0"),
        (["--days", "366"], "--days: must be 1 to 365, got 366"),
        (["--days", "7", "--full"], "--full: not allowed with argument --days"),
        (["--capacity", "-3"], "--capacity: must be at least 1, got -3"),
        (["--timeout", "nan"], "--timeout: must be seconds above 0, got nan"),
        (["--mode", "sideways"], "--mode: invalid choice: 'sideways'"),
    ],
)
def test_an_invalid_option_is_named(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        demo.main(arguments)
    assert message in capsys.readouterr().err
