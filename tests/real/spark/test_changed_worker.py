"""A job whose Python workers have no part that `udfs` finds in PySpark's own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from tests.support import PATIENCE

HERE = Path(__file__).parent
ROOT = HERE.parents[2]


@pytest.mark.thorough
def test_the_job_has_the_same_rows_and_one_warning_says_what_is_lost() -> None:
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": f"{HERE}{os.pathsep}{ROOT}"}
    environment.pop("SPARK_HOME", None)
    job = subprocess.run(
        [sys.executable, HERE / "changed_worker_job.py"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert job.returncode == 0, job.stderr
    rows = str([(number, 2 * number) for number in range(50)])
    assert [line for line in job.stdout.splitlines() if line.startswith("rows")] == [f"rows {rows}"] * (
        1 + hasattr(F, "arrow_udf")
    )
    assert ("use ordered_wait, or Spark 4.1 or newer" in job.stdout) == (not hasattr(F, "arrow_udf"))
    [warning] = [line for line in job.stderr.splitlines() if "differs from the supported ones" in line]
    assert "the calls of a cancelled task continue until Spark kills this worker" in warning
    assert "rows reach Spark only when its buffer is full or the task ends" in warning
