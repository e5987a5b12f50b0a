"""A release changes the repository completely or not at all, and nothing else.

No registry is needed: the programs that build, install and check packages are replaced. Git is real.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[2]
COPIED = ["trio_asyncio_io/__init__.py", ".ci/release", ".gitignore", "pyproject.toml"]
CHANGELOG = "# Changelog\n\n## 1.2.3 (unreleased)\n\n* Two and two make four.\n\n## 1.2.2 (2026-01-02)\n"

# The python of .venv and of each environment that it makes
PYTHON = """\
#!/bin/sh
case "$*" in
    *"-m build"*) mkdir "$5" && touch "$5/trio_asyncio_io.whl" &&
        tar -czf "$5/trio_asyncio_io.tar.gz" ./pyproject.toml ;;
    *"-m venv"*) mkdir -p "$4/bin" && cp "$0" "$4/bin/python" ;;
    *"-m twine"* | *"-m zensical"* | *"-m pytest"*) [ "$2" != "$(cat "$BROKEN" 2>/dev/null)" ] ;;
esac
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one change to release, and a remote on the disk."""
    made = tmp_path / "repository"
    for name in COPIED:
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, made / name)
    (made / "CHANGELOG.md").write_text(CHANGELOG)
    python = made / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(PYTHON)
    python.chmod(0o755)
    git(made, "init", "--quiet", "--initial-branch=main")
    git(made, "config", "user.name", "Somebody")
    git(made, "config", "user.email", "somebody@example.org")
    git(made, "add", "--all")
    git(made, "commit", "--quiet", "--message=Begin")
    git(made, "clone", "--quiet", "--bare", ".", tmp_path / "remote")
    git(made, "remote", "add", "origin", tmp_path / "remote")
    return made


def git(repository: Path, *arguments: str | Path) -> str:
    done = subprocess.run(["git", *arguments], cwd=repository, capture_output=True, text=True, check=True)
    return done.stdout


def release(repository: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    rooms, broken = repository.parent / "rooms", repository.parent / "broken"
    rooms.mkdir(exist_ok=True)
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/nowhere", "TMPDIR": rooms, "BROKEN": broken}
    command = [repository / ".ci/release", *arguments]
    done = subprocess.run(command, cwd=repository, env=environment, capture_output=True, text=True, check=False)
    assert list(rooms.iterdir()) == [], "the scratch clone was removed"
    return done


def state(repository: Path) -> str:
    return git(repository, "status", "--porcelain", "--branch", "--ignored") + git(repository, "show-ref", "--head")


def test_a_release_is_one_commit_with_version_and_changelog_and_a_tag_on_it(repository: Path) -> None:
    begin = git(repository, "rev-parse", "HEAD").strip()
    done = release(repository, "1.2.3")
    assert done.returncode == 0, done.stderr
    assert git(repository, "log", "--format=%s %an", f"{begin}..main").splitlines() == ["Release 1.2.3 Somebody"]
    assert git(repository, "rev-parse", "v1.2.3^{commit}") == git(repository, "rev-parse", "main")
    assert '\nversion = "1.2.3"\n' in (repository / "pyproject.toml").read_text()
    assert '\n__version__ = "1.2.3"\n' in (repository / "trio_asyncio_io/__init__.py").read_text()
    dated = re.sub(r"1\.2\.3 \(\d{4}-\d\d-\d\d\)", "1.2.3 (unreleased)", (repository / "CHANGELOG.md").read_text())
    assert "(unreleased)" not in (repository / "CHANGELOG.md").read_text()
    assert dated == CHANGELOG
    assert git(repository, "status", "--porcelain") == ""
    assert {each.name for each in (repository / "dist").iterdir()} == {"trio_asyncio_io.tar.gz", "trio_asyncio_io.whl"}


def test_a_release_pushes_nothing_and_prints_how_to(repository: Path) -> None:
    before = git(repository, "ls-remote", "origin")
    done = release(repository, "1.2.3")
    assert "git push origin main v1.2.3" in done.stdout
    assert git(repository, "ls-remote", "origin") == before


def test_a_dry_run_changes_nothing(repository: Path) -> None:
    git(repository, "switch", "--quiet", "--create", "branch")
    before = state(repository)
    done = release(repository, "1.2.3", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "Release 1.2.3" in done.stdout
    assert state(repository) == before


def test_the_version_of_a_dry_run_is_that_of_the_project_unless_it_is_given(repository: Path) -> None:
    project = repository / "pyproject.toml"
    project.write_text(re.sub(r'^version = ".*"$', 'version = "1.2.3"', project.read_text(), flags=re.MULTILINE))
    git(repository, "commit", "--quiet", "--all", "--message=Set the version")
    done = release(repository, "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "v1.2.3 passes all checks" in done.stdout


@pytest.mark.parametrize("tool", ["twine", "zensical", "pytest"])
def test_a_failed_check_changes_nothing(repository: Path, tool: str) -> None:
    (repository.parent / "broken").write_text(tool)
    before = state(repository)
    assert release(repository, "1.2.3").returncode != 0
    assert state(repository) == before


def test_a_version_without_a_section_in_the_changelog_is_refused(repository: Path) -> None:
    before = state(repository)
    done = release(repository, "1.2.4")
    assert done.returncode != 0
    assert "CHANGELOG.md has no section '## 1.2.4 (unreleased)'" in done.stderr
    assert state(repository) == before


@pytest.mark.parametrize("version", ["", "1.2", "v1.2.3", "1.2.03", "1.2.3-rc1", "--dryrun"])
def test_a_version_of_another_form_is_refused(repository: Path, version: str) -> None:
    done = release(repository, version)
    assert done.returncode != 0
    assert f"got '{version}'" in done.stderr


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["git", "tag", "v1.2.3"], "v1.2.3 exists"),
        (["touch", "new.txt"], "not clean"),
        (["git", "switch", "--quiet", "--create", "branch"], "git switch main"),
    ],
    ids=["a version that has a tag", "a working tree with changes", "another branch"],
)
def test_a_repository_that_is_not_ready_is_refused(repository: Path, change: list[str], message: str) -> None:
    subprocess.run(change, cwd=repository, check=True)
    done = release(repository, "1.2.3")
    assert done.returncode != 0
    assert message in done.stderr
