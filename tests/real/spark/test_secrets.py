"""No error and no log line of a job shows a secret that the job holds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.variation  # eight jobs that fail, each of which ends its workers
def test_neither_the_driver_nor_a_worker_prints_a_secret() -> None:
    """The output has the logs of the JVM and of the workers, and the errors with their causes."""
    here = Path(__file__).parent
    environment = {**os.environ, "TEST_SECRET": "sk-5EC4ET", "PYSPARK_PYTHON": sys.executable}
    environment["PYTHONPATH"] = str(here / "workers")
    command = [sys.executable, str(here / "secrets_job.py")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    output = done.stdout + done.stderr
    assert (output.count("RAISED Traceback"), output.count("RETURNED [Row(message=")) == (8, 2), output
    for said in ("cannot open", "no such row", "Connection refused", "no token of 9 characters", "redis://***@"):
        assert said in output, said
    assert "5EC4ET" not in output
