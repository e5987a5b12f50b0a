"""Draws the pictures of the pages, from runs of their scripts.

python .ci/drawings.py docs
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from changing import without_changes
from pictures import learn, tutorial

EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"

# By drawing: the script that writes it, and the name of its file
SCRIPTS = {
    "guide/report-run.html": ("report_run.py", "run.html"),
    "guide/forecast.svg": ("rehearse.py", "forecast.svg"),
}
PICTURES = learn.PICTURES | tutorial.PICTURES
DRAWINGS = [*SCRIPTS, *PICTURES]


def text_of(drawing: str) -> str:
    """The text of its file."""
    if drawing in PICTURES:
        return PICTURES[drawing]()
    script, file = SCRIPTS[drawing]
    with TemporaryDirectory() as folder:
        subprocess.run([sys.executable, EXAMPLES / script], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        return without_changes(Path(folder, file).read_text("utf-8"))


if __name__ == "__main__":
    for each in DRAWINGS:
        Path(sys.argv[1], each).write_text(text_of(each), encoding="utf-8")
