"""The check of the Python that Spark starts for its workers."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from udfs.check._worker import check_worker


def python(path: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    monkeypatch.setenv("PYSPARK_PYTHON", str(path))


def reporting(version: tuple[int, ...], lacking: list[str]) -> str:
    return f"echo '{json.dumps({'version': version, 'lacking': lacking})}'"


def test_without_a_setting_it_is_the_drivers_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    assert check_worker().state == "ok"


def test_a_python_with_all_packages_is_ok(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    found = check_worker()
    assert (found.state, found.text) == ("ok", f"PYSPARK_PYTHON is {sys.executable}")


def test_a_python_that_lacks_packages_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # -S and -E: without the packages of this environment
    python(tmp_path / "python", f'cd /\nexec {sys.executable} -I -S "$@"', monkeypatch)
    found = check_worker()
    assert found.state == "fault"
    assert found.text == (
        f"PYSPARK_PYTHON is {tmp_path}/python, which lacks pyspark, pandas, pyarrow, trio, trio_asyncio_io, udfs"
    )
    assert found.remedy == f"Unset PYSPARK_PYTHON, or set it to {sys.executable}"


def test_another_version_than_the_drivers_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python(tmp_path / "python", reporting((3, 9), []), monkeypatch)
    driver = "{}.{}".format(*sys.version_info[:2])
    assert check_worker().text == f"PYSPARK_PYTHON is {tmp_path}/python, which is Python 3.9; the driver's is {driver}"


def test_a_path_without_a_program_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", str(tmp_path / "gone"))
    assert check_worker().text == f"PYSPARK_PYTHON is {tmp_path}/gone, which is not a program"


@pytest.mark.parametrize("script", ["exit 1", "echo hello"])
def test_a_program_that_is_not_a_python_is_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    python(tmp_path / "python", script, monkeypatch)
    assert "which does not run as a Python" in check_worker().text
