"""The checks of the driver's Python and of its packages."""

from __future__ import annotations

import sys
import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

from udfs.check import _packages
from udfs.check._packages import OLDEST_PYTHON, check_packages, check_python

PROJECT = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(autouse=True)
def _no_spark_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)


def install(monkeypatch: pytest.MonkeyPatch, **versions: str | None) -> None:
    """Replace the versions of some packages; None: it is not installed."""

    def found(name: str) -> str:
        known = versions.get(name, version(name))
        if known is None:
            raise PackageNotFoundError(name)
        return known

    monkeypatch.setattr(_packages, "version", found)


def spark_home(folder: Path, number: str) -> str:
    (folder / "jars").mkdir()
    (folder / "jars" / f"spark-core_2.13-{number}.jar").touch()
    return str(folder)


def test_the_oldest_python_is_that_of_the_project() -> None:
    assert PROJECT["requires-python"] == ">=" + ".".join(map(str, OLDEST_PYTHON))


def test_this_python_is_named() -> None:
    found = check_python()
    assert found.state == "ok"
    assert found.text.endswith(sys.executable)


def test_a_python_that_is_too_old_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 10, 14))
    found = check_python()
    assert found.state == "fault"
    assert "Install Python 3.11 or newer" in found.remedy


def test_the_versions_of_the_packages_are_named() -> None:
    found = check_packages()
    assert found.state == "ok"
    assert f"pyspark {version('pyspark')}" in found.text


@pytest.mark.parametrize("name", ["pyspark", "pandas", "protobuf", "pyarrow"])
def test_each_package_of_the_extra_is_required(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    install(monkeypatch, **{name: None})
    found = check_packages()
    assert (found.state, found.text) == ("fault", f"{name} is not installed")
    assert found.remedy == "Install them: pip install 'trio-asyncio-io[spark]'"


@pytest.mark.parametrize(
    ("number", "fits"),
    [("3.4.9", False), ("3.5", True), ("3.5.0", True), ("4.3.1", True), ("4.4.0", False), ("4.4.0.dev1", False)],
)
def test_a_version_outside_the_limits_is_a_fault(monkeypatch: pytest.MonkeyPatch, number: str, fits: bool) -> None:
    install(monkeypatch, pyspark=number)
    found = check_packages()
    assert found.state == ("ok" if fits else "fault")
    if not fits:
        assert found.text == f"pyspark {number} does not fit pyspark<4.4,>=3.5"


def test_without_the_distribution_there_is_one_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> list[str]:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(_packages, "requires", missing)
    assert check_packages().text == f"trio-asyncio-io is not installed in {sys.prefix}"


def test_a_spark_home_with_the_same_version_is_ok(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPARK_HOME", spark_home(tmp_path, version("pyspark")))
    assert check_packages().state == "ok"


def test_a_spark_home_with_another_version_is_a_fault(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPARK_HOME", spark_home(tmp_path, "3.4.1"))
    found = check_packages()
    assert found.state == "fault"
    assert f"SPARK_HOME is {tmp_path} with Spark 3.4.1" in found.text
    assert found.remedy.startswith("Unset SPARK_HOME")


def test_a_spark_home_without_spark_is_a_fault(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert check_packages().text == f"SPARK_HOME is {tmp_path}, which has no Spark"
