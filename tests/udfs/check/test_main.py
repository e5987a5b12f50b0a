"""The command `python -m udfs.check`."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.absent import run_without
from udfs.check import __main__ as command
from udfs.check._finding import Finding


@pytest.fixture
def findings(monkeypatch: pytest.MonkeyPatch) -> dict[str, Finding]:
    """What the checks find, to be changed by a test."""
    found = {name: Finding("ok", f"{name} works") for name in command.CHECKS}
    monkeypatch.setattr(command, "CHECKS", {name: lambda name=name: found[name] for name in found})
    return found


@pytest.mark.usefixtures("findings")
def test_without_arguments_all_checks_run_and_spark_is_the_last(capsys: pytest.CaptureFixture[str]) -> None:
    command.main([])
    assert capsys.readouterr().out.splitlines() == [
        "ok       python    python works",
        "ok       packages  packages works",
        "ok       java      java works",
        "ok       worker    worker works",
        "ok       spark     spark works",
    ]


@pytest.mark.usefixtures("findings")
def test_only_the_named_checks_run(capsys: pytest.CaptureFixture[str]) -> None:
    command.main(["java", "python"])
    assert [line.split()[1] for line in capsys.readouterr().out.splitlines()] == ["python", "java"]


def test_faults_are_reported_with_their_remedies_and_spark_is_skipped(
    findings: dict[str, Finding], capsys: pytest.CaptureFixture[str]
) -> None:
    findings["java"] = Finding("fault", "no java", "Install it.")
    findings["worker"] = Finding("fault", "no python", "Set it.")
    with pytest.raises(SystemExit) as caught:
        command.main([])
    assert caught.value.code == "\nerror: java: no java.\nInstall it.\n\nerror: worker: no python.\nSet it."
    lines = capsys.readouterr().out.splitlines()
    assert lines[2] == "fault    java      no java"
    assert lines[-1] == "skipped  spark     because of java and worker"


def test_an_unknown_check_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["jav"])
    expected = "no such check: 'jav' (checks: python, packages, java, worker, spark)"
    assert expected in capsys.readouterr().err


def test_the_command_needs_no_package() -> None:
    absent = {"pyspark", "pandas", "pyarrow", "trio", "trio_asyncio_io"}
    code = "import udfs.check.__main__ as check; check.main(['python']); print(check.CHECKS['worker'] is not None)"
    assert run_without(absent, code).splitlines()[-1] == "True"


def test_a_fault_is_the_exit_status_of_the_process() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "udfs.check", "java"], env={"PATH": ""}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stdout == "fault    java      no java on PATH, and JAVA_HOME is not set\n"
    assert "Install Java 17" in done.stderr
