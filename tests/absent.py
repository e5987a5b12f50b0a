"""A new interpreter in which some packages cannot be found, as if they were not installed."""

from __future__ import annotations

import subprocess
import sys

_FINDER = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {absent}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
"""


def run_without(absent: set[str], code: str) -> str:
    """The output of the code; the last line of its traceback if it fails."""
    command = [sys.executable, "-c", _FINDER.format(absent=absent) + code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return (done.stdout if done.returncode == 0 else done.stderr.splitlines()[-1]).strip()
