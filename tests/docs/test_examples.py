"""Each script of docs/examples prints the output that its page shows, when run as a user would run it.

That is `python file.py` in an empty directory, with the wheel installed, PYSPARK_PYTHON unset, and the service of the
examples on its port, which only one test run at a time can use.
"""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.real.connect._server import running
from tests.support import PATIENCE, thorough_except, wait_until
from tests.wheel import ROOT, environment_of_a_user
from trio_asyncio_io import Verdict
from trio_asyncio_io.integration import TaskTimes

pytestmark = pytest.mark.processes

EXAMPLES = ROOT / "docs" / "examples"
SCRIPTS = sorted(path.name for path in EXAMPLES.glob("*.py") if not path.name.startswith("test_"))

# What `explain` adds if a worker began late, as on a busy machine
LATE = r" There was no task .*"
# Output that differs from run to run
VARIES = {
    "explain_spark.py": LATE,
    "measure_it.py": r"\d+\.\d\d",
    "operator_blocked.py": r"(?<=\()/\S*/",  # the folder of the script
    "paid_llm.py": (
        rf"{LATE}|- The longest calls decide[^-]*|The tasks waited for a processor .*\n"  # on a busy machine
        r"|(?<=over all records: ).*|\s*\d[\d,.]*( [mµ]?s\b)?\s*"
    ),
    "spark_metrics.py": r"mean \S+ \w*s, slowest \S+ \w*s, p50 \S+ \w*s, p95 \S+ \w*s, p99 \S+ \w*s",
}
SERVICE = "http://127.0.0.1:8000"
WITH_POSTGRES = ["operator_asyncpg.py"]
PAID = "paid_llm.py"  # needs the stand-in for LLM services
WITH_PAID = ["paid_llm_clients.py", "paid_llm_providers.py", "paid_llm_tasks.py"]  # need it, and that script

# Spark gives a Python process ten seconds to start, which is not always enough on a busy machine
TOO_SLOW_FOR_SPARK = "Python worker failed to connect back"


def source_of(script: str) -> str:
    return (EXAMPLES / script).read_text(encoding="utf-8")


def is_local_spark(script: str) -> bool:
    return re.search(r'master\(f?"local', source_of(script)) is not None


def run(python: Path, script: str, folder: Path, *options: str, **more: str) -> subprocess.CompletedProcess[str]:
    shutil.copy(EXAMPLES / script, folder)
    return subprocess.run(
        [python, *options, script],
        cwd=folder,
        env=environment_of_a_user(**more),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def check(script: str, done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stderr
    varies = VARIES.get(script, r"\Z")
    expected = (EXAMPLES / script).with_suffix(".out").read_text(encoding="utf-8")
    assert re.sub(varies, "", done.stdout) == re.sub(varies, "", expected), done.stderr


# Those that neither start Spark nor need another server than the service
PLAIN = [
    name
    for name in SCRIPTS
    if not is_local_spark(name) and name not in {*WITH_POSTGRES, *WITH_PAID, "spark_connect.py"}
]
# `just test` runs the examples whose names begin like this: those that a newcomer sees first
FIRST = ("readme", "index", "start", "stop")
SIGNALS = [signal.SIGTERM, signal.SIGINT, signal.SIGKILL]


@pytest.fixture(autouse=True)
def _needs(request: pytest.FixtureRequest) -> None:
    """Start the service for a script that contains its URL."""
    script = getattr(request.node, "callspec", None) and request.node.callspec.params.get("script")
    if script and SERVICE in source_of(script):
        assert request.getfixturevalue("service") == SERVICE


@pytest.mark.parametrize("package", ["trio_asyncio_io", "udfs"])
def test_the_packages_come_from_the_wheel(python: Path, package: str, tmp_path: Path) -> None:
    command = [python, "-c", f"import {package}; print({package}.__file__)"]
    found = subprocess.check_output(command, cwd=tmp_path, env=environment_of_a_user(), text=True)
    assert Path(found.strip()).is_relative_to(python.parents[1])


@pytest.mark.parametrize("script", thorough_except([name for name in PLAIN if name.startswith(FIRST)], PLAIN))
def test_an_example_prints_the_output_of_its_page(python: Path, script: str, tmp_path: Path) -> None:
    check(script, run(python, script, tmp_path))


def test_an_output_is_the_same_if_a_worker_began_late() -> None:
    early, late = (
        TaskTimes(tasks=1, at_once=1, began=began, ended=began + 5.0, arrived=began, seconds=5.0)
        for began in (1.0, 4.0)
    )
    said = (early + late).applied_to(Verdict("capacity", "Try capacity=4.", ()))
    assert said.advice != "Try capacity=4."
    assert re.sub(LATE, "", said.advice) == "Try capacity=4."


@pytest.mark.spark
@pytest.mark.timeout(2 * PATIENCE)
@pytest.mark.thorough  # each one starts a JVM
@pytest.mark.parametrize("script", [name for name in SCRIPTS if is_local_spark(name) and name != PAID])
def test_an_example_with_spark_prints_the_output_of_its_page(python: Path, script: str, tmp_path: Path) -> None:
    done = run(python, script, tmp_path)
    if done.returncode and TOO_SLOW_FOR_SPARK in done.stderr:
        done = run(python, script, tmp_path)
    check(script, done)


@pytest.mark.spark
@pytest.mark.thorough
@pytest.mark.timeout(2 * PATIENCE)
def test_the_example_with_a_paid_service_pays_once_for_each_row(python: Path, llm: str, tmp_path: Path) -> None:
    """The numbers of its output vary, so the service's own counts are compared."""
    done = run(python, PAID, tmp_path)
    check(PAID, done)
    counted = httpx.get(f"{llm}/stats").json()
    assert (counted["rows"], counted["rows_paid_twice"]) == (1000, 0)
    assert "throttled" not in counted


@pytest.mark.thorough
@pytest.mark.usefixtures("llm")
@pytest.mark.parametrize("script", WITH_PAID)
def test_an_example_with_llm_services_prints_the_output_of_its_page(python: Path, script: str, tmp_path: Path) -> None:
    for package in ("anthropic", "openai"):
        pytest.importorskip(package)
    for other in (PAID, "paid_llm_providers.py"):
        shutil.copy(EXAMPLES / other, tmp_path)
    check(script, run(python, script, tmp_path))


@pytest.mark.spark
@pytest.mark.thorough
@pytest.mark.timeout(2 * PATIENCE)
def test_the_example_with_a_remote_session_needs_no_java(python: Path, tmp_path: Path) -> None:
    (tmp_path / "server").mkdir()
    (tmp_path / "client").mkdir()
    with running(tmp_path / "server") as url:
        no_java = str(tmp_path / "no java")
        done = run(python, "spark_connect.py", tmp_path / "client", SPARK_REMOTE=url, JAVA_HOME=no_java)
    check("spark_connect.py", done)


@pytest.mark.parametrize("script", WITH_POSTGRES)
def test_an_example_with_a_database_uses_a_real_one(python: Path, postgres: str, script: str, tmp_path: Path) -> None:
    url = f"postgresql://postgres@/postgres?host={postgres}"
    check(script, run(python, script, tmp_path, DATABASE_URL=url))


@pytest.mark.parametrize("number", thorough_except([signal.SIGKILL], SIGNALS), ids=lambda number: number.name)
def test_an_example_that_is_stopped_resumes_without_loss(python: Path, number: signal.Signals, tmp_path: Path) -> None:
    hangs = source_of("stop_and_resume.py").replace("sleep(0.1)", "sleep(0.1 if int(line[5:]) < 200 else 3600)")
    (tmp_path / "stop_and_resume.py").write_text(hangs, encoding="utf-8")
    output = tmp_path / "output.txt"
    with subprocess.Popen(
        [python, "stop_and_resume.py"], cwd=tmp_path, env=environment_of_a_user(), stdout=subprocess.PIPE, text=True
    ) as process:
        wait_until(lambda: output.exists() and output.stat().st_size)  # after the first commit
        process.send_signal(number)
        printed, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == (-signal.SIGKILL if number == signal.SIGKILL else 0)
    assert printed.startswith("stopping\n") is (number != signal.SIGKILL)
    check("stop_and_resume.py", run(python, "stop_and_resume.py", tmp_path))
    assert output.read_text(encoding="utf-8").splitlines() == [f"LINE {n}" for n in range(300)]


@pytest.mark.thorough
def test_the_example_with_types_has_no_errors(tmp_path: Path) -> None:
    shutil.copy(EXAMPLES / "type_check_it.py", tmp_path)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path), "type_check_it.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("script", "number"), [("test_lookup.py", 2), ("test_orders.py", 1)])
def test_an_example_test_passes_without_settings_of_pytest(
    python: Path, script: str, number: int, tmp_path: Path
) -> None:
    done = run(python, script, tmp_path, "-m", "pytest")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(rf"\b{number} passed in ", done.stdout)


def test_the_description_on_a_package_index_has_no_link_into_the_repository(python: Path, tmp_path: Path) -> None:
    command = [
        python,
        "-c",
        "from importlib.metadata import metadata; print(metadata('trio-asyncio-io').get_payload())",
    ]
    shown = subprocess.check_output(command, cwd=tmp_path, env=environment_of_a_user(), text=True)
    assert shown.startswith("# trio-asyncio-io")
    assert re.findall(r"\]\((?!https://)", shown) == []
    assert "<!--" not in shown


def test_every_script_has_its_output_in_the_same_folder() -> None:
    outputs = {path.with_suffix(".py").name for path in EXAMPLES.glob("*.out")}
    assert outputs == set(SCRIPTS)
