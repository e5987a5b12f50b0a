"""The check for Java, which reports the problem and the remedy before a long installation."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / ".ci" / "java_check.py"


def check(directory: Path, version: str | None, *, java_home: bool = False) -> subprocess.CompletedProcess[str]:
    """Run the check where `java -version` prints this line, or without a java."""
    if version is not None:
        java = directory / "bin" / "java"
        java.parent.mkdir()
        java.write_text(f"#!/bin/sh\necho '{version}' >&2\n")
        java.chmod(0o755)
    environment = {key: value for key, value in os.environ.items() if key != "JAVA_HOME"}
    environment["PATH"] = str(directory / "bin")
    if java_home:
        environment |= {"JAVA_HOME": str(directory), "PATH": ""}
    return subprocess.run([sys.executable, SCRIPT], env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("version", ["17.0.15", "21.0.2", "25"])
@pytest.mark.parametrize("java_home", [True, False])
def test_a_java_that_is_new_enough_passes_without_output(tmp_path: Path, version: str, java_home: bool) -> None:
    done = check(tmp_path, f'openjdk version "{version}" 2025-04-15', java_home=java_home)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(("version", "major"), [("1.8.0_402", "8"), ("11.0.22", "11")])
def test_a_java_that_is_too_old_is_named_with_the_remedy(tmp_path: Path, version: str, major: str) -> None:
    done = check(tmp_path, f'openjdk version "{version}"')
    assert done.returncode != 0
    assert major in done.stderr
    assert "17" in done.stderr
    assert "JAVA_HOME" in done.stderr


def test_without_java_the_check_names_what_to_install(tmp_path: Path) -> None:
    done = check(tmp_path, None)
    assert done.returncode != 0
    assert "apt-get install" in done.stderr
