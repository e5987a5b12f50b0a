"""The Python of the workers, and the error of one that lacks a package."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark import cloudpickle

from udfs._plan.worker_python import use_the_drivers_python, with_package_check

LOAD = """
import pickle, sys
if "{missing}":
    sys.modules["{missing}"] = None
run = pickle.loads(bytes.fromhex("{pickled}"))
print(run(20))
"""


@pytest.fixture(autouse=True)
def _no_choice_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)


def python_of(master: str, chosen: str = "python3", **conf: str) -> str:
    """The Python of a session's workers after the first UDF."""
    context = SimpleNamespace(master=master, pythonExec=chosen)
    values = {key.replace("_", "."): value for key, value in conf.items()}
    use_the_drivers_python(SimpleNamespace(_sc=context, conf=values))
    return context.pythonExec


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*,4]", "local-cluster[2,1,1024]"])
def test_local_workers_use_the_drivers_python(master: str) -> None:
    assert python_of(master) == sys.executable


@pytest.mark.parametrize("master", ["spark://host:7077", "yarn", "k8s://https://host"])
def test_remote_workers_use_the_python_that_spark_chooses(master: str) -> None:
    assert python_of(master) == "python3"


def test_the_users_environment_variable_has_precedence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "python3")
    assert python_of("local[2]") == "python3"


def test_a_python_of_the_users_setting_or_of_the_context_has_precedence() -> None:
    assert python_of("local[2]", spark_pyspark_python="/opt/python") == "python3"
    assert python_of("local[2]", "/opt/python") == "/opt/python"


def test_a_remote_session_is_not_changed() -> None:
    use_the_drivers_python(SimpleNamespace())


def sent(missing: str) -> subprocess.CompletedProcess[str]:
    """Load a function in a process without this package."""

    def run(number: int) -> int:
        return number + 1

    pickled = cloudpickle.dumps(with_package_check(run)).hex()
    code = LOAD.format(missing=missing, pickled=pickled)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


@pytest.mark.processes
def test_a_worker_with_the_packages_runs_the_function() -> None:
    assert sent("").stdout == "21\n"


@pytest.mark.processes
@pytest.mark.parametrize("package", ["pyarrow", "trio", "trio_asyncio_io", "udfs"])
def test_a_missing_package_is_reported_with_the_variable_to_set(package: str) -> None:
    *_, message = sent(package).stderr.splitlines()
    assert message == (
        f"ModuleNotFoundError: the Python of Spark's workers, {sys.executable}, has no module {package}. Before Spark "
        "starts, set the environment variable PYSPARK_PYTHON to a Python in which trio-asyncio-io[spark] is installed"
    )


def test_the_function_is_returned_unchanged() -> None:
    def run(number: int) -> int:
        return number + 1

    found: Any = with_package_check(run)
    assert found is run
