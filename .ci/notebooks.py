"""Executes the notebooks of the documentation, and writes their outputs into them.

python .ci/notebooks.py
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
from changing import without_changes
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parents[1] / "docs" / "notebooks").glob("*.ipynb"))
SECONDS_PER_CELL = 300


def execute(path: Path) -> Any:
    """The notebook, with the outputs of a new kernel.

    Raises:
        nbclient.exceptions.CellExecutionError: A cell raised an exception.
    """
    notebook = nbformat.read(path, as_version=4)
    with TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        NotebookClient(notebook, timeout=SECONDS_PER_CELL, record_timing=False, resources=resources).execute()
    notebook.metadata.pop("language_info", None)  # it names the version of Python
    return notebook


def text_of(notebook: Any) -> str:
    """The file of a notebook, without what differs between runs."""
    return without_changes(nbformat.writes(notebook)) + "\n"


if __name__ == "__main__":
    for each in NOTEBOOKS:
        each.write_text(text_of(execute(each)), encoding="utf-8")
        sys.stdout.write(f"{each}\n")
