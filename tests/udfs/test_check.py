"""The command `python -m udfs.check`, with programs in place of Java and of the Spark job."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

from tests.absent import run_without
from udfs import check
from udfs.check import Finding, _check_packages, _check_python, _check_spark, check_java

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture
def findings(monkeypatch: pytest.MonkeyPatch) -> dict[str, Finding]:
    """What the checks find, to be changed by a test."""
    found = {name: Finding("ok", f"{name} works") for name in check.CHECKS}
    monkeypatch.setattr(check, "CHECKS", {name: lambda name=name: found[name] for name in found})
    return found


@pytest.mark.usefixtures("findings")
def test_without_arguments_all_checks_run_and_spark_is_the_last(capsys: pytest.CaptureFixture[str]) -> None:
    check.main([])
    assert capsys.readouterr().out.splitlines() == [
        "ok       python    python works",
        "ok       packages  packages works",
        "ok       java      java works",
        "ok       spark     spark works",
    ]


@pytest.mark.usefixtures("findings")
def test_only_the_named_checks_run(capsys: pytest.CaptureFixture[str]) -> None:
    check.main(["java", "python"])
    assert [line.split()[1] for line in capsys.readouterr().out.splitlines()] == ["python", "java"]


def test_faults_are_reported_with_their_remedies_and_spark_is_skipped(
    findings: dict[str, Finding], capsys: pytest.CaptureFixture[str]
) -> None:
    findings["java"] = Finding("fault", "no java", "Install it.")
    findings["packages"] = Finding("fault", "no pyspark", "Get it.")
    with pytest.raises(SystemExit) as caught:
        check.main([])
    assert caught.value.code == "\nerror: packages: no pyspark.\nGet it.\n\nerror: java: no java.\nInstall it."
    lines = capsys.readouterr().out.splitlines()
    assert lines[2] == "fault    java      no java"
    assert lines[-1] == "skipped  spark     because of packages and java"


def test_an_unknown_check_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        check.main(["jav"])
    expected = "no such check: 'jav' (checks: python, packages, java, spark)"
    assert expected in capsys.readouterr().err


def test_the_command_needs_no_package() -> None:
    absent = {"pyspark", "pandas", "pyarrow", "trio", "trio_asyncio_io"}
    code = "import udfs.check as check; check.main(['python']); print('spark' in check.CHECKS)"
    assert run_without(absent, code).splitlines()[-1] == "True"


def test_a_fault_is_the_exit_status_of_the_process() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "udfs.check", "java"], env={"PATH": ""}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stdout == "fault    java      no java on PATH, and JAVA_HOME is not set\n"
    assert "Install Java 17" in done.stderr


@pytest.fixture(autouse=True)
def _no_spark_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)


def install(monkeypatch: pytest.MonkeyPatch, **versions: str | None) -> None:
    """Replace the versions of some packages; None: it is not installed."""

    def found(name: str) -> str:
        known = versions.get(name, version(name))
        if known is None:
            raise PackageNotFoundError(name)
        return known

    monkeypatch.setattr(check, "version", found)


def test_the_oldest_python_is_that_of_the_project() -> None:
    assert PROJECT["requires-python"] == ">=" + ".".join(map(str, check.OLDEST_PYTHON))


def test_this_python_is_named() -> None:
    found = _check_python()
    assert found.state == "ok"
    assert found.text.endswith(sys.executable)


def test_a_python_that_is_too_old_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 10, 14))
    found = _check_python()
    assert found.state == "fault"
    assert "Install Python 3.11 or newer" in found.remedy


@pytest.mark.parametrize("name", ["pyspark", "pandas", "pyarrow"])
def test_each_package_of_the_extra_is_required(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    install(monkeypatch, **{name: None})
    found = _check_packages()
    assert (found.state, found.text) == ("fault", f"{name} is not installed")
    assert found.remedy == "Install them: in a clone, pip install '.[spark]'"


@pytest.mark.parametrize(
    ("number", "fits"),
    [("3.4.9", False), ("3.5", True), ("3.5.0", True), ("4.3.1", True), ("4.4.0", False), ("4.4.0.dev1", False)],
)
def test_a_version_outside_the_limits_is_a_fault(monkeypatch: pytest.MonkeyPatch, number: str, fits: bool) -> None:
    install(monkeypatch, pyspark=number)
    found = _check_packages()
    assert found.state == ("ok" if fits else "fault")
    if not fits:
        assert found.text == f"pyspark {number} does not fit pyspark<4.4,>=3.5"


def test_without_the_distribution_there_is_one_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> list[str]:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(check, "requires", missing)
    assert _check_packages().text == f"trio-asyncio-io is not installed in {sys.prefix}"


@pytest.mark.parametrize(
    ("number", "state", "text"),
    [
        (version("pyspark"), "ok", "pyspark"),
        ("3.4.1", "fault", "SPARK_HOME is {} with Spark 3.4.1"),
        (None, "fault", "SPARK_HOME is {}, which has no Spark"),
    ],
    ids=["same", "another", "none"],
)
def test_a_spark_home_has_the_version_of_the_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, number: str | None, state: str, text: str
) -> None:
    if number is not None:
        (tmp_path / "jars").mkdir()
        (tmp_path / "jars" / f"spark-core_2.13-{number}.jar").touch()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    found = _check_packages()
    assert found.state == state
    assert text.format(tmp_path) in found.text
    assert found.remedy.startswith("Unset SPARK_HOME" if state == "fault" else "")


@pytest.fixture(params=["PATH", "JAVA_HOME"])
def origin(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The variable by which Java is found."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    if request.param == "JAVA_HOME":
        monkeypatch.setenv("JAVA_HOME", str(tmp_path))
        monkeypatch.setenv("PATH", "")
    return request.param


def install_java(folder: Path, script: str) -> Path:
    java = folder / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\n{script}\n")
    java.chmod(0o755)
    return java


@pytest.mark.parametrize("version", ["17.0.15", "21.0.2", "25"])
def test_a_java_that_is_new_enough_is_ok(tmp_path: Path, origin: str, version: str) -> None:
    java = install_java(tmp_path, f"echo 'openjdk version \"{version}\" 2025-04-15' >&2")
    found = check_java()
    where = "the first on PATH" if origin == "PATH" else "from JAVA_HOME"
    assert (found.state, found.text) == ("ok", f"{version[:2]}, {java}, {where}")


@pytest.mark.usefixtures("origin")
def test_the_output_of_java_may_be_in_another_encoding(tmp_path: Path) -> None:
    """Java repeats the options of the environment, and its messages are in the language of the machine."""
    install_java(tmp_path, "printf 'Picked up JAVA_TOOL_OPTIONS: -Da=/M\\374ller\nopenjdk version \"17\"\n' >&2")
    assert check_java().state == "ok"


def test_without_java_the_remedy_names_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    found = check_java()
    assert (found.state, found.text) == ("fault", "no java on PATH, and JAVA_HOME is not set")
    assert "apt-get install" in found.remedy


@pytest.mark.parametrize(
    ("script", "text"),
    [
        ("echo 'openjdk version \"1.8.0_402\"' >&2", "is Java 8: too old"),
        ("echo 'openjdk version \"11.0.22\"' >&2", "is Java 11: too old"),
        (
            "echo 'no Java runtime\npresent' >&2\nexit 2",
            "is not a working Java (`java -version` exits with 2: no Java runtime present)",
        ),
    ],
    ids=["8", "11", "a stub"],
)
@pytest.mark.usefixtures("origin")
def test_a_java_that_is_too_old_or_none_is_a_fault_with_the_remedy(tmp_path: Path, script: str, text: str) -> None:
    install_java(tmp_path, script)
    found = check_java()
    assert found.state == "fault"
    assert found.text.endswith(text)
    assert "Install Java 17 or newer" in found.remedy
    assert "JAVA_HOME" in found.remedy


def test_a_java_home_without_a_java_is_a_fault_even_if_there_is_one_on_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_java(tmp_path, "echo 'openjdk version \"17\"' >&2")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    found = check_java()
    assert found.state == "fault"
    assert found.text.startswith(f"{tmp_path}/gone/bin/java, from JAVA_HOME, does not run")


def program(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def failing(error: str) -> list[str]:
    return program(f"import sys; sys.exit({error!r})")


def test_the_last_line_of_a_job_that_ends_well_is_what_was_found() -> None:
    found = _check_spark(program("print('a line of Spark'); print('4.3.0, three calls')"))
    assert found == Finding("ok", "4.3.0, three calls")


@pytest.mark.parametrize(
    ("error", "text", "remedy"),
    [
        ("java.net.UnknownHostException: laptop: laptop", "own name has no address", "SPARK_LOCAL_IP=127.0.0.1"),
        ("BindException: Service 'sparkDriver' failed after 16 retries", "cannot listen", "SPARK_LOCAL_IP"),
        ("java.lang.UnsupportedOperationException: getSubject is not supported", "too new", "JAVA_HOME"),
        ("java.io.IOException: No space left on device", "the disk is full", "SPARK_LOCAL_DIRS"),
        ("ERROR DiskBlockManager: Failed to create any local dir.", "temporary files", "SPARK_LOCAL_DIRS"),
        ("OpenJDK: Cannot allocate memory", "not enough memory", "--driver-memory"),
        ("[PYTHON_VERSION_MISMATCH] Python in worker has", "another version of Python", "PYSPARK_PYTHON="),
        (
            'java.io.IOException: Cannot run program "/gone/python3": error=2',
            "/gone/python3, the Python",
            "PYSPARK_PYTHON=",
        ),
        (
            "ModuleNotFoundError: the Python of Spark's workers, /usr/bin/python3, has no module trio. Before Spark",
            "the Python of the workers, /usr/bin/python3, has no module trio",
            "PYSPARK_PYTHON=",
        ),
        ("ModuleNotFoundError: No module named 'pyspark'", "No module named 'pyspark'", "pip install"),
        ("Python worker failed to connect back.", "within Spark's limit", "less busy"),
        (
            f"Unrecognized VM option 'x'\nTraceback {'(call last) ' * 100}\n[JAVA_GATEWAY_EXITED] Java",
            "while Spark started:\nmany lines\nUnrecognized VM option 'x'",
            "JAVA_TOOL_OPTIONS",
        ),
    ],
)
def test_a_known_fault_has_its_remedy(error: str, text: str, remedy: str) -> None:
    found = _check_spark(failing(f"many lines\n{error}\nmany more"))
    assert found.state == "fault"
    assert text in found.text
    assert remedy in found.remedy


def test_the_output_of_the_job_may_be_in_another_encoding() -> None:
    code = "import os; os.write(2, b'/M\\xfcller: No space left on device'); os._exit(1)"
    assert _check_spark(program(code)).text == "the disk is full"


def test_an_unknown_fault_shows_the_end_of_the_output_and_the_command() -> None:
    found = _check_spark(failing("something else"))
    assert found.state == "fault"
    assert found.text == "the job ended with status 1:\n    something else"
    assert sys.executable in found.remedy


def test_a_job_that_hangs_is_a_fault() -> None:
    found = _check_spark(program("input_that_never_comes = __import__('threading').Event().wait()"), seconds=0.5)
    assert (found.state, found.text) == ("fault", "the job did not end within 0.5 seconds")
