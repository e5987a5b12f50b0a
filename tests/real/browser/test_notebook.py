"""The displays of a notebook in a real browser: they fit, and can be read on a light and on a dark theme."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from notebooks import NOTEBOOKS

from tests.real.browser._chromium import NEEDS_CHROMIUM, Chromium
from tests.real.browser._looks import CONTRASTS, OUTSIDE, OVERLAPPING

pytestmark = [pytest.mark.processes, NEEDS_CHROMIUM]

# Those of JupyterLab
THEMES = {"light": "background:#fff;color:#212121", "dark": "background:#111;color:#e0e0e0"}


@pytest.fixture
def outputs() -> str:
    """All HTML in the stored outputs of the notebooks."""
    cells = [cell for path in NOTEBOOKS for cell in nbformat.read(path, as_version=4).cells]
    found = [output.get("data", {}).get("text/html") for cell in cells for output in cell.get("outputs", [])]
    return "\n".join(filter(None, found))


@pytest.mark.parametrize("theme", THEMES)
def test_the_displays_fit_and_can_be_read(browser: Chromium, theme: str, outputs: str, tmp_path: Path) -> None:
    page = tmp_path / "outputs.html"
    page.write_text(f'<!doctype html><meta charset="utf-8"><body style="{THEMES[theme]}">{outputs}', encoding="utf-8")
    browser.show(page, width=700, scheme="light")
    assert browser.problems == []
    assert set(browser.requests) <= {page.as_uri(), "about:srcdoc"}
    assert browser.evaluate(OUTSIDE) == []
    assert browser.evaluate(OVERLAPPING) == []
    assert min(browser.evaluate(CONTRASTS)) >= 4.5
    assert browser.evaluate("document.querySelectorAll('table').length") == 2  # counts and times
    assert browser.evaluate("document.querySelectorAll('iframe').length") == 1  # the report
