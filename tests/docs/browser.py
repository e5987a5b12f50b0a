"""A page as a browser shows it: headless Chromium, without a network."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.support import PATIENCE

__all__ = ["dom_of", "find_chromium"]

_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
_OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--virtual-time-budget=20000",
    "--dump-dom",
)


def find_chromium() -> str | None:
    """The browser that the variable CHROMIUM names, or the first one on PATH."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, _NAMES)), None)


def dom_of(page: Path, query: str = "", *, width: int = 1200) -> str:
    """The HTML of a page after its scripts have run."""
    chromium = find_chromium()
    if chromium is None:
        pytest.fail("this test needs Chromium: `apt-get install chromium`, or set CHROMIUM to the path of a browser")
    with TemporaryDirectory() as profile:
        done = subprocess.run(
            [
                chromium,
                *_OPTIONS,
                f"--user-data-dir={profile}",
                f"--window-size={width},900",
                f"{page.as_uri()}?{query}",
            ],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    return done.stdout
