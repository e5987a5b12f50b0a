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
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.processes import is_alive
from tests.support import PATIENCE, wait_until
from udfs.check import Finding
from udfs.demo import __main__ as demo

pytestmark = pytest.mark.timeout(3 * PATIENCE)

CHECKED = "Every flight came out once, and matches the source data."

BATCH = ["--days", "1"]
FIRST_DAY = 842  # flights

ENVIRONMENT = {
    "COLUMNS": "80",
    "PYTHONPATH": str(Path(__file__).parents[3]),
    "PYTHONUNBUFFERED": "1",
}


@dataclass(frozen=True)
class Run:
    """A run that has ended: its output, its exit status, its folder, and the child processes that it had."""

    output: str
    status: int
    folder: Path
    children: list[int] = field(default_factory=list)


def python(*arguments: str, cwd: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=cwd,
        env={**os.environ, **ENVIRONMENT, "TMPDIR": str(cwd)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


@pytest.fixture(scope="module")
def batch(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("demo")
    with python("-m", "udfs.demo", *BATCH, cwd=folder) as process:
        output, _ = process.communicate(timeout=PATIENCE)
        return Run(output, process.returncode, folder)


def stopped(number: int, folder: Path, child: str) -> Run:
    """A run that gets a signal as soon as it has a child with this command."""
    with python("-m", "udfs.demo", *BATCH, cwd=folder) as process:
        wait_until(lambda: any(child in command_of(pid) for pid in descendants(process.pid)))
        children = descendants(process.pid)
        process.send_signal(number)
        output, _ = process.communicate(timeout=PATIENCE)
        return Run(output, process.returncode, folder, children)


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def descendants(pid: int) -> list[int]:
    children: list[int] = []
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # the thread has ended
            children.extend(map(int, thread.read_text().split()))
    return [*children, *(each for child in children for each in descendants(child))]


@pytest.mark.spark
def test_a_batch_run_enriches_and_checks_every_flight(batch: Run) -> None:
    assert batch.status == 0, batch.output
    assert CHECKED in batch.output
    table = pq.read_table(batch.folder / "output" / "flights")
    assert table.num_rows == FIRST_DAY
    assert {"temp", "wind_speed", "manufacturer", "error", "dep_delay", "tailnum"} <= set(table.column_names)
    assert table.column("error").null_count == FIRST_DAY
    assert table.column("temp").null_count == 39


@pytest.mark.spark
def test_the_terminal_and_the_report_have_the_same_number_of_retries(batch: Run) -> None:
    page = re.sub(r"<[^>]+>", "", (batch.folder / "output" / "flights-report.html").read_text())
    [retried] = re.findall(r"^retried +([\d,]+) ", batch.output, re.MULTILINE)
    assert re.findall(r"([\d,]+)\s*retries", page) == [retried]


@pytest.mark.spark
def test_no_line_of_the_result_is_wider_than_the_terminal(batch: Run) -> None:
    _, _, result = batch.output.partition("Departure delay")
    assert 0 < max(len(line) for line in result.splitlines()) <= 80, batch.output


@pytest.mark.spark
@pytest.mark.thorough
@pytest.mark.parametrize(
    ("number", "child"),
    [(signal.SIGINT, "SparkSubmit"), (signal.SIGINT, "pyspark.daemon"), (signal.SIGTERM, "pyspark.daemon")],
    ids=["Ctrl-C while Spark starts", "Ctrl-C", "SIGTERM"],
)
def test_a_signal_stops_a_run_and_leaves_no_process_and_no_temporary_file_behind(
    number: int, child: str, tmp_path: Path
) -> None:
    run = stopped(number, tmp_path, child)
    assert run.status == 128 + number, run.output
    # A JVM that starts may write a note after it
    assert "Stopping Spark and the service." in run.output.splitlines(), run.output
    assert "Traceback" not in run.output, run.output
    assert not list(tmp_path.rglob("flights.csv"))
    assert len(run.children) >= 2, "the service and Spark's JVM"
    wait_until(lambda: not [pid for pid in run.children if is_alive(pid)])


@pytest.mark.processes
def test_ctrl_c_during_the_imports_ends_the_demo_silently(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "httpx.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    monkeypatch.setitem(ENVIRONMENT, "PYTHONPATH", f"{tmp_path}{os.pathsep}{ENVIRONMENT['PYTHONPATH']}")
    with python("-m", "udfs.demo", cwd=tmp_path) as process:
        output, _ = process.communicate()
    assert (output, process.returncode) == ("", 130)


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
        (["--days", "all"], "--days: must be 1 to 365, got all"),
    ],
)
def test_an_invalid_option_is_named(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        demo.main(arguments)
    assert message in capsys.readouterr().err


def test_a_second_run_in_one_folder_is_refused_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both would write to one table, and each would miss rows and find others twice."""
    monkeypatch.setattr(demo, "check_java", lambda: Finding("ok", ""))
    monkeypatch.setattr(demo, "session", None)
    monkeypatch.chdir(tmp_path)
    with (
        demo.alone_in(Path("output")),
        pytest.raises(SystemExit, match=r"another run uses the folder output here\. Wait for its end, or"),
    ):
        demo.main([])
    with demo.alone_in(Path("output")):  # the lock ends with the block
        pass


def test_a_folder_that_cannot_be_written_is_named_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "check_java", lambda: Finding("ok", ""))
    monkeypatch.setattr(demo, "session", None)
    monkeypatch.chdir(tmp_path)
    Path("output").touch()
    with pytest.raises(SystemExit, match=r"cannot make the folder output here: .* Run it in another folder"):
        demo.main([])
