"""`.ci/matrix python` runs the tests with the newest Python of this machine, and names those that are missing."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# Answers the version check, creates an environment whose Python it is, installs nothing, and prints pytest's arguments
PYTHON = """\
#!/bin/sh
case "$*" in
    "-c import sys"*) echo {version} ;;
    "-m venv"*) mkdir -p "$5/bin" && cp "$0" "$5/bin/python" ;;
    "-m pytest"*) echo "{version}: $*"; exit {code} ;;
esac
"""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone with only the script, a `bin` with the programs that it runs, and an empty home."""
    for name in (".ci/matrix", "pyproject.toml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    for name in ("cat", "cp", "dirname", "mkdir", "sed", "sh"):
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.symlink_to(shutil.which(name) or name)
    make_python(tmp_path / ".venv/bin/python", "3.11")
    return tmp_path


def make_python(path: Path, version: str, code: int = 0) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(PYTHON.format(version=version, code=code))
    path.chmod(0o755)


def matrix(clone: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": str(clone / "bin"), "HOME": str(clone / "home")}
    command = [clone / ".ci/matrix", "python", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def warnings(done: subprocess.CompletedProcess[str]) -> list[str]:
    return [line.split()[6].rstrip(":") for line in done.stderr.splitlines() if line.startswith("WARNING: NOTHING WAS")]


@pytest.mark.parametrize(
    ("found", "newest", "missing"),
    [(["3.12"], "3.12", ["3.14", "3.13"]), (["3.12", "3.13"], "3.13", ["3.14"]), (["3.13", "3.14"], "3.14", [])],
)
def test_the_newest_python_runs_the_tests_and_newer_ones_are_named_as_missing(
    clone: Path, found: list[str], newest: str, missing: list[str]
) -> None:
    for version in found:
        make_python(clone / "bin" / f"python{version}", version)
    done = matrix(clone)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{newest}: -m pytest")
    assert "tests/operator" in done.stdout
    assert "tests/udfs" in done.stdout
    assert warnings(done) == missing


def test_without_any_of_them_all_are_named_as_missing(clone: Path) -> None:
    done = matrix(clone)
    assert (done.returncode, done.stdout, warnings(done)) == (0, "", ["3.14", "3.13", "3.12"])


def test_a_python_of_pyenv_is_found_although_its_shim_does_not_run(clone: Path) -> None:
    make_python(clone / "bin/python3.13", "")
    make_python(clone / "home/.pyenv/versions/3.13.7/bin/python", "3.13")
    assert matrix(clone, "3.13", "tests/core").stdout.endswith(" tests/core\n")


def test_a_python_that_is_named_and_missing_is_an_error(clone: Path) -> None:
    done = matrix(clone, "3.14")
    assert done.returncode == 1
    assert done.stderr == "error: no Python 3.14 on PATH or in pyenv: install it\n"


def test_failed_tests_are_an_error_that_names_the_python(clone: Path) -> None:
    make_python(clone / "bin/python3.13", "3.13", code=1)
    done = matrix(clone)
    assert done.returncode == 1
    assert done.stderr.endswith("error: the tests failed with Python 3.13\n")
    assert warnings(done) == ["3.14"]
