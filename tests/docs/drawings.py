"""Draws the pictures of the pages, from runs of their scripts.

python -m tests.docs.drawings docs
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.docs.changing import without_changes
from tests.docs.pictures import learn, tutorial

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"

# By drawing: the script that writes it, and the name of its file
SCRIPTS = {
    "guide/trace-run.svg": ("trace_run.py", "trace-run.svg"),
    "guide/report-run.html": ("report_run.py", "run.html"),
    "guide/forecast.svg": ("rehearse.py", "forecast.svg"),
}
PICTURES = learn.PICTURES | tutorial.PICTURES
DRAWINGS = [*SCRIPTS, *PICTURES]


def draw(target: Path) -> None:
    """Write all drawings into this directory."""
    for drawing in DRAWINGS:
        (target / drawing).parent.mkdir(exist_ok=True)
    for drawing, (script, file) in SCRIPTS.items():
        with TemporaryDirectory() as folder:
            subprocess.run([sys.executable, EXAMPLES / script], cwd=folder, check=True, stdout=subprocess.DEVNULL)
            text = without_changes(Path(folder, file).read_text("utf-8"))
            (target / drawing).write_text(text, encoding="utf-8")
    for drawing, picture in PICTURES.items():
        (target / drawing).write_text(picture(), encoding="utf-8")


if __name__ == "__main__":
    draw(Path(sys.argv[1]))
