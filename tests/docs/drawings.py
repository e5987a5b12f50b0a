"""Draws the timelines of the pages: runs their scripts and copies the drawings.

python -m tests.docs.drawings docs
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.docs import tutorial

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"

# By drawing: the script that writes it
SCRIPTS = {"trace-run.svg": "trace_run.py"}


def draw(target: Path) -> None:
    """Write all drawings into this directory."""
    for drawing, script in SCRIPTS.items():
        with TemporaryDirectory() as folder:
            subprocess.run([sys.executable, EXAMPLES / script], cwd=folder, check=True, stdout=subprocess.DEVNULL)
            shutil.copy(Path(folder, drawing), target / drawing)


if __name__ == "__main__":
    draw(Path(sys.argv[1]))
    tutorial.draw(Path(sys.argv[1]))
