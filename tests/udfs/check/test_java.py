"""The check for Java."""

from __future__ import annotations

from pathlib import Path

import pytest

from udfs.check._java import check_java


@pytest.fixture(params=["PATH", "JAVA_HOME"])
def origin(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The variable by which Java is found."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    if request.param == "JAVA_HOME":
        monkeypatch.setenv("JAVA_HOME", str(tmp_path))
        monkeypatch.setenv("PATH", "")
    return request.param


def install(folder: Path, script: str) -> Path:
    java = folder / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\n{script}\n")
    java.chmod(0o755)
    return java


@pytest.mark.parametrize("version", ["17.0.15", "21.0.2", "25"])
def test_a_java_that_is_new_enough_is_ok(tmp_path: Path, origin: str, version: str) -> None:
    java = install(tmp_path, f"echo 'openjdk version \"{version}\" 2025-04-15' >&2")
    found = check_java()
    where = "the first on PATH" if origin == "PATH" else "from JAVA_HOME"
    assert (found.state, found.text) == ("ok", f"{version[:2]}, {java}, {where}")


@pytest.mark.parametrize(("version", "major"), [("1.8.0_402", 8), ("11.0.22", 11)])
@pytest.mark.usefixtures("origin")
def test_a_java_that_is_too_old_is_a_fault_with_the_remedy(tmp_path: Path, version: str, major: int) -> None:
    install(tmp_path, f"echo 'openjdk version \"{version}\"' >&2")
    found = check_java()
    assert found.state == "fault"
    assert found.text.endswith(f"is Java {major}: too old")
    assert "Install Java 17 or newer" in found.remedy
    assert "JAVA_HOME" in found.remedy


@pytest.mark.usefixtures("origin")
def test_a_stub_without_a_java_is_a_fault(tmp_path: Path) -> None:
    install(tmp_path, "echo 'no Java runtime present' >&2\nexit 2")
    found = check_java()
    assert found.state == "fault"
    assert found.text.endswith("is not a working Java (`java -version` exits with 2)")


def test_without_java_the_remedy_names_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    found = check_java()
    assert (found.state, found.text) == ("fault", "no java on PATH, and JAVA_HOME is not set")
    assert "apt-get install" in found.remedy


def test_a_java_home_without_a_java_is_a_fault_even_if_there_is_one_on_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "echo 'openjdk version \"17\"' >&2")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    found = check_java()
    assert found.state == "fault"
    assert found.text.startswith(f"{tmp_path}/gone/bin/java, from JAVA_HOME, does not run")
