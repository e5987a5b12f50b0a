"""The demo as a user runs it: with real Spark, a real service and a real Ctrl-C.

Most of the time goes into starting Spark. So one run serves several tests, and all but a batch run are left to `just
thorough`.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from datetime import date
from io import StringIO
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from rich.console import Console

from tests.support import PATIENCE, wait_until
from udfs.check import Finding
from udfs.demo import __main__ as demo
from udfs.demo._stream import Stream, days_of
from udfs.demo._summary import print_calls

pytestmark = pytest.mark.timeout(3 * PATIENCE)

CHECKED = "Every flight came out once, and matches the source data."

STREAM = ["--stream", "--days", "2", "--output", "stream"]
BATCH = ["--days", "1"]
INTERRUPTED_BATCH = ["--days", "1", "--output", "interrupted"]
FIRST_DAY = 842  # flights

ENVIRONMENT = {
    "COLUMNS": "80",
    "PYTHONPATH": str(Path(__file__).parents[3]),
    "PYTHONUNBUFFERED": "1",
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


def interrupt(process: subprocess.Popen[str]) -> Run:
    children = descendants(process.pid)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=PATIENCE)
    return Run(output, process.returncode, children)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def batch(folder: Path) -> Run:
    with python("-m", "udfs.demo", *BATCH, cwd=folder) as process:
        output, _ = process.communicate(timeout=PATIENCE)
        return Run(output, process.returncode, [])


@pytest.fixture(scope="module")
def interrupted_start(folder: Path) -> Run:
    """Ctrl-C while Spark starts."""
    with python("-m", "udfs.demo", cwd=folder) as process:
        wait_until(lambda: any("SparkSubmit" in command_of(pid) for pid in descendants(process.pid)))
        return interrupt(process)


@pytest.fixture(scope="module")
def interrupted_batch(folder: Path) -> Run:
    with python("-m", "udfs.demo", *INTERRUPTED_BATCH, cwd=folder) as process:
        wait_until(lambda: any("pyspark.daemon" in command_of(pid) for pid in descendants(process.pid)))
        return interrupt(process)


@pytest.fixture(scope="module")
def streams(folder: Path) -> tuple[Run, Run]:
    """A stream that Ctrl-C stops after its first micro-batch, and the same command again, to its end."""
    with python("-m", "udfs.demo", *STREAM, cwd=folder) as process:
        wait_until((folder / "stream" / "checkpoint" / "commits" / "0").exists)
        stopped = interrupt(process)
    with python("-m", "udfs.demo", *STREAM, cwd=folder) as process:
        output, _ = process.communicate(timeout=PATIENCE)
        return stopped, Run(output, process.returncode, [])


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


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
    assert table.num_rows == FIRST_DAY
    assert {"temp", "wind_speed", "manufacturer", "error", "dep_delay", "tailnum"} <= set(table.column_names)
    assert table.column("error").null_count == FIRST_DAY
    assert table.column("temp").null_count == 39


@pytest.mark.spark
def test_the_terminal_and_the_report_have_the_same_number_of_retries(batch: Run, folder: Path) -> None:
    page = re.sub(r"<[^>]+>", "", (folder / "output" / "flights-report.html").read_text())
    [retried] = re.findall(r"^retried +([\d,]+) ", batch.output, re.MULTILINE)
    assert re.findall(r"([\d,]+)\s*retries", page) == [retried]


@pytest.mark.spark
def test_no_line_of_the_result_is_wider_than_the_terminal(batch: Run) -> None:
    _, _, result = batch.output.partition("Departure delay")
    assert 0 < max(len(line) for line in result.splitlines()) <= 80, batch.output


@pytest.mark.spark
@pytest.mark.thorough
@pytest.mark.parametrize("run", ["interrupted_start", "interrupted_batch", "streams"])
def test_ctrl_c_stops_a_run_and_leaves_no_process_behind(run: str, request: pytest.FixtureRequest) -> None:
    found = request.getfixturevalue(run)
    stopped = found[0] if run == "streams" else found
    assert stopped.status == 130, stopped.output
    last = "Stopping Spark and the service." + " The same command continues the stream." * (run == "streams")
    assert last in stopped.output.splitlines(), stopped.output  # a JVM that starts may write a note after it
    assert "Traceback" not in stopped.output, stopped.output
    assert len(stopped.children) >= 2, "the service and Spark's JVM"
    wait_until(lambda: not [pid for pid in stopped.children if is_alive(pid)])


@pytest.mark.spark
@pytest.mark.thorough
def test_a_stopped_stream_is_resumed_without_loss(streams: tuple[Run, Run], folder: Path) -> None:
    _, run = streams
    assert run.status == 0, run.output
    assert "Resuming the stopped stream" in run.output
    assert CHECKED in run.output
    assert len(list((folder / "stream" / "incoming").glob("*.csv"))) == 2


@pytest.mark.processes
def test_ctrl_c_during_the_imports_ends_the_demo_silently(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "httpx.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    monkeypatch.setitem(ENVIRONMENT, "PYTHONPATH", f"{tmp_path}{os.pathsep}{ENVIRONMENT['PYTHONPATH']}")
    with python("-m", "udfs.demo", cwd=tmp_path) as process:
        output, _ = process.communicate()
    assert (output, process.returncode) == ("", 130)


def test_each_day_of_a_stream_has_its_flights(tmp_path: Path) -> None:
    path = tmp_path / "flights.csv"
    header, *lines = (f"{day},EWR\n" for day in ("year,month,day", "2013,1,1", "2013,12,31", "2013,2,1", "2013,1,1"))
    path.write_text(header + "".join(lines))
    assert days_of(path, end=date(2013, 12, 31)) == {
        "2013-01-01": [header, lines[0], lines[3]],
        "2013-02-01": [header, lines[2]],
    }
    assert list(days_of(path, end=date(2014, 1, 1))) == ["2013-01-01", "2013-02-01", "2013-12-31"]


def test_a_run_that_is_stopped_while_it_starts_afresh_can_be_repeated(tmp_path: Path) -> None:
    (tmp_path / "done").touch()
    (tmp_path / "checkpoint").mkdir()  # the last of the three folders
    stream = Stream(tmp_path)
    assert not stream.is_resumed
    assert [path.name for path in tmp_path.iterdir()] == ["incoming"]


def test_a_run_without_flights_has_no_requests_for_each_flight() -> None:
    """This happens when a stream is resumed that was stopped after its last flight."""
    console = Console(record=True, file=StringIO())
    print_calls(console, Counter(), {}, 1.0)
    assert "0.00 for each flight" in console.export_text()


def test_the_number_of_days_is_that_of_the_span() -> None:
    assert [demo._options(arguments).end for arguments in ([], ["--full"], ["--days", "1"])] == [
        date(2013, 2, 1),
        date(2014, 1, 1),
        date(2013, 1, 2),
    ]


@pytest.mark.processes
def test_without_java_the_demo_states_what_to_install_and_starts_nothing(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"} | {"PATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "udfs.demo"], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: no java on PATH, and JAVA_HOME is not set. Install Java 17 or newer")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--days", "0"], "--days: must be 1 to 365, got 0"),
        (["--days", "366"], "--days: must be 1 to 365, got 366"),
        (["--days", "7", "--full"], "--full: not allowed with argument --days"),
        (["--capacity", "-3"], "--capacity: must be 1 to 10,000, got -3"),
        (["--output", "/"], "--output: / exists already. Remove it, or choose another folder"),
        (["--output", "a[1]"], "a[1] has a '[', and Spark reads *, ?, [, { and \\ as patterns. Choose another folder"),
    ],
)
def test_an_invalid_option_is_named(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        demo.main(arguments)
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--stream"], []], ids=["stream", "batch"])
def test_a_folder_that_cannot_be_written_is_named_before_spark_starts(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "check_java", lambda: Finding("ok", ""))
    monkeypatch.setattr(demo, "session", None)
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit, match=rf"cannot write to {tmp_path}/file.*: .* Choose another folder: --output"):
        demo.main([*arguments, "--output", str(tmp_path / "file" / "flights")])
