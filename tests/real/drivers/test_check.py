"""`python -m udfs.check` with a real Spark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import PATIENCE
from tests.wheel import ROOT, environment_of_a_user

pytestmark = [pytest.mark.spark, pytest.mark.thorough, pytest.mark.timeout(2 * PATIENCE)]


def test_this_machine_can_run_a_job(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "udfs.check"],
        cwd=tmp_path,
        env=environment_of_a_user(PYTHONPATH=str(ROOT), SPARK_LOCAL_IP="127.0.0.1"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert [line.split()[:2] for line in done.stdout.splitlines()] == [
        ["ok", name] for name in ("python", "packages", "java", "spark")
    ]
    assert f"in Python {sys.version.split()[0]}, {sys.executable}" in done.stdout.splitlines()[-1]
    assert list(tmp_path.iterdir()) == []
