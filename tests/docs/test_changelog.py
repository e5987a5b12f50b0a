"""The changelog of the next release has every fragment, so towncrier accepts all their names."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
FRAGMENTS = ROOT / "docs/changelog.d"
OTHERS = {"README.md", "template.md"}


def test_the_changelog_of_the_next_release_has_each_fragment_once() -> None:
    command = [sys.executable, "-m", "towncrier", "build", "--draft", "--version", "next", "--dir", ROOT]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for fragment in FRAGMENTS.iterdir():
        if fragment.name not in OTHERS:
            first_line = fragment.read_text(encoding="utf-8").splitlines()[0]
            assert done.stdout.count(f"\n- {first_line}") == 1, fragment.name


def test_the_changelog_has_the_marker_for_releases() -> None:
    changelog = (ROOT / "docs/maintain/changelog.md").read_text(encoding="utf-8")
    assert changelog.count("\n<!-- towncrier release notes start -->\n") == 1
