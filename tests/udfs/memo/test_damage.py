"""Damage: a file is refused by name, or a log ends there. No answer is ever wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.udfs.memo.damage import MAKERS
from tests.wheel import ROOT

pytestmark = pytest.mark.processes


@pytest.mark.parametrize("times", [100, pytest.param(1_000, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("kind", MAKERS)
def test_damaged_files_are_refused_by_name_and_never_read_as_other_answers(
    tmp_path: Path, kind: str, times: int
) -> None:
    """Random bit flips, zeroed blocks and missing ends. A crash of Arrow would end the process that reads."""
    command = [sys.executable, "-m", "tests.udfs.memo.damage", kind, str(times), str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert ended.returncode == 0, ended.stderr
    outcomes = json.loads(ended.stdout)
    noticed = "fewer" if kind.startswith("log") else "refused"
    assert outcomes.keys() <= {"refused", "right", "removed: fewer", noticed}
    assert outcomes[noticed] > times / 3
