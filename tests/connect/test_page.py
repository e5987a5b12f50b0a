"""The documentation's examples of a remote session do what their page says, each section in a script of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.test_pages import ROOT, SECTIONS, Section
from tests.support import PATIENCE

URL = "sc://127.0.0.1:15002"


def script_of(section: Section) -> str:
    """Its examples one after the other, each line at its line of the page, so that errors point there."""
    script = ""
    for example in section.examples:
        script += "\n" * (example.line - 1 - script.count("\n")) + example.code
    return script


@pytest.mark.parametrize("section", [each for each in SECTIONS if each.is_remote], ids=str)
def test_the_examples_run_in_a_process_that_is_a_client_and_nothing_else(
    section: Section, url: str, tmp_path: Path
) -> None:
    script = tmp_path / section.page.name
    script.write_text(script_of(section).replace(URL, url), encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if name != "SPARK_CONNECT_MODE_ENABLED"}
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path,
        env=environment | {"PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path), "JAVA_HOME": str(tmp_path / "no java")},
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "".join(each.output or "" for each in section.examples)
