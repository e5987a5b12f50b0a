"""Bugs of behaviour, planted one at a time: the exploration finds each, with a short trace.

`mutants.py` makes small changes of any line; these are chosen. Most break a promise only in some interleavings, so they
are the test of the invariants in `tests/explored`. A bug that is not found has a reason in its `survives`: the
invariant that is missing, or why nobody can see a difference.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
BUGS: list[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("planted.toml").read_text())["bug"]
TESTS = ("tests/explored/test_shell.py", "tests/explored/test_core.py")
STEPS = 15  # of the longest trace


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug["breaks"])
def test_each_planted_bug_changes_one_place(bug: dict[str, Any]) -> None:
    assert (ROOT / bug["file"]).read_text().count(bug["old"]) == 1
    compile(planted(bug), bug["file"], "exec")


@pytest.mark.soak
@pytest.mark.processes
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug["breaks"])
def test_each_planted_bug_is_found_with_a_short_trace(bug: dict[str, Any], tmp_path: Path) -> None:
    source = tmp_path / "planted.py"
    source.write_text(planted(bug))
    options = ["-x", "-q", "-p", "no:cacheprovider", "-m", "not (thorough or soak)"]
    command = [sys.executable, "-m", "tests.mutation", bug["file"], str(source), *options, *TESTS]
    any_numbers = {"EXPLORED_NUMBERS": "any"}
    done = subprocess.run(command, cwd=ROOT, env=os.environ | any_numbers, capture_output=True, text=True, check=False)
    assert (done.returncode == 0) == ("survives" in bug), done.stdout[-4_000:]
    steps = [int(number) for number in re.findall(r"^E +(\d+)\. ", done.stdout, re.MULTILINE)]
    assert max(steps, default=0) <= STEPS, done.stdout[-4_000:]


def planted(bug: dict[str, Any]) -> str:
    return (ROOT / bug["file"]).read_text().replace(bug["old"], bug["new"])
