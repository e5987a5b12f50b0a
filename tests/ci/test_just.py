"""`.ci/just` creates .venv with the first Python on PATH that is new enough, and runs just there."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / ".ci" / "just"

# Answers the version check, and creates an environment whose pip does nothing and whose just prints who created it
PYTHON = """\
#!/bin/sh
case "$*" in
    "-c import sys"*) echo {version} ;;
    "-m venv"*) mkdir -p .venv/bin && cp "$0" .venv/bin/python &&
        printf '#!/bin/sh\\necho just of {name}\\n' >.venv/bin/just && chmod +x .venv/bin/just ;;
esac
"""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone with only the script, and a folder `bin` with the programs that it runs."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(SCRIPT, tmp_path / ".ci")
    (tmp_path / "bin").mkdir()
    for name in ("chmod", "cp", "dirname", "mkdir", "rm", "sh"):
        (tmp_path / "bin" / name).symlink_to(shutil.which(name) or name)
    return tmp_path


def just(clone: Path, **versions: str) -> subprocess.CompletedProcess[str]:
    """Run the script with Pythons of these names and versions on PATH."""
    for name, version in versions.items():
        python = clone / "bin" / name.replace("_", ".")
        python.write_text(PYTHON.format(version=version, name=python.name))
        python.chmod(0o755)
    environment = {"PATH": str(clone / "bin")}
    return subprocess.run([clone / ".ci/just"], env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("version", ["3.11", "3.20", "4.0"])
def test_python_3_11_or_newer_creates_the_environment(clone: Path, version: str) -> None:
    done = just(clone, python3=version)
    assert (done.returncode, done.stdout) == (0, "just of python3\n"), done.stderr
    assert f"python3 (Python {version})" in done.stderr


def test_the_newest_of_the_other_pythons_replaces_a_python3_that_is_too_old(clone: Path) -> None:
    done = just(clone, python3="3.9", python3_11="3.11", python3_14="3.14")
    assert (done.returncode, done.stdout) == (0, "just of python3.14\n"), done.stderr


def test_an_existing_environment_is_used_without_output(clone: Path) -> None:
    just(clone, python3="3.14")
    done = just(clone, python3="2.7")
    assert (done.returncode, done.stdout, done.stderr) == (0, "just of python3\n", "")


@pytest.mark.parametrize("version", ["2.7", "3.10"])
def test_without_a_python_that_is_new_enough_the_error_names_those_found(clone: Path, version: str) -> None:
    done = just(clone, python3=version)
    assert done.returncode == 1
    assert f"no Python 3.11 or newer on PATH. Found: python3 is Python {version}." in done.stderr
    assert "apt-get install python3" in done.stderr
    assert not (clone / ".venv").exists()
