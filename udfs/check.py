"""Checks whether this machine can run `udfs`: Python, packages, Java, and a Spark job.

    python -m udfs.check         # all checks, in half a minute
    python -m udfs.check java    # some of them: python, packages, java, spark

The command needs nothing but Python, so it also works before anything else is installed.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Final, Literal, NamedTuple

__all__ = ["Finding", "check_java", "main"]

OLDEST_PYTHON: Final = (3, 11)
OLDEST_JAVA: Final = 17

_INSTALL_PACKAGES: Final = "Install them: in a clone, pip install '.[spark]'"
_INSTALL_JAVA: Final = (
    f"Install Java {OLDEST_JAVA} or newer: for example `apt-get install openjdk-17-jre-headless`, or "
    "`brew install openjdk@17`. Set JAVA_HOME if it is not the first java on PATH."
)
_SET_PYTHON: Final = f"Set PYSPARK_PYTHON={sys.executable}, also in spark-defaults.conf."
_SET_ADDRESS: Final = "Set SPARK_LOCAL_IP=127.0.0.1, or add this machine's name to /etc/hosts."


class Finding(NamedTuple):
    """The result of one check.

    Attributes:
        state: "skipped" means that the check needs another one, which found a fault.
        text: What was found; for a fault, what is wrong.
        remedy: What to do about a fault, as an imperative.
    """

    state: Literal["ok", "fault", "skipped"]
    text: str
    remedy: str = ""


def _check_python() -> Finding:
    """Check the version of this Python."""
    text = f"{platform.python_version()}, {sys.executable}"
    if sys.version_info < OLDEST_PYTHON:
        return Finding(
            "fault", f"{text}: too old", "Install Python 3.11 or newer, and use a virtual environment of it."
        )
    return Finding("ok", text)


def _check_packages() -> Finding:
    """Check that the packages of the extra `spark` are installed and fit, and that SPARK_HOME is not another Spark."""
    try:
        requirements = requires("trio-asyncio-io") or []
    except PackageNotFoundError:
        return Finding("fault", f"trio-asyncio-io is not installed in {sys.prefix}", _INSTALL_PACKAGES)
    if problems := list(_unmet(requirements)):
        return Finding("fault", "; ".join(problems), _INSTALL_PACKAGES)
    shown = ", ".join(f"{name} {version(name)}" for name in ("pyspark", "pandas", "pyarrow"))
    return _check_spark_home() or Finding("ok", shown)


def _unmet(requirements: list[str]) -> Iterator[str]:
    for requirement in requirements:
        match = re.match(r"""^([\w-]+)([^;]*);\s*extra\s*==\s*['"]spark['"]$""", requirement)
        if match is None:
            continue
        name, limits = match[1], match[2].strip()
        try:
            found = version(name)
        except PackageNotFoundError:
            yield f"{name} is not installed"
            continue
        if not _fits(found, limits):
            yield f"{name} {found} does not fit {name}{limits}"


def _fits(found: str, limits: str) -> bool:
    """Whether a version is within limits such as ">=3.5,<4.4". The package `packaging` may not be installed."""
    number = _numbers(found)
    bounds = re.findall(r"(>=|<)\s*([\d.]+)", limits)
    return all(number >= _numbers(bound) if sign == ">=" else number < _numbers(bound) for sign, bound in bounds)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text)[:3])


def _check_spark_home() -> Finding | None:
    """A fault if SPARK_HOME has the JARs of another version than the package pyspark."""
    home = os.environ.get("SPARK_HOME")
    if not home:
        return None
    jars = sorted(Path(home, "jars").glob("spark-core_*.jar"))
    if not jars:
        return Finding("fault", f"SPARK_HOME is {home}, which has no Spark", "Unset SPARK_HOME.")
    found = jars[0].stem.rpartition("-")[2]
    if found != version("pyspark"):
        text = f"SPARK_HOME is {home} with Spark {found}, and the package pyspark is {version('pyspark')}"
        return Finding("fault", text, f"Unset SPARK_HOME, or install the same version: pip install pyspark=={found}")
    return None


def check_java() -> Finding:
    """Check that the Java that PySpark would start exists, that it runs, and that it is new enough for Spark."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")  # noqa: PTH118 - printed unchanged
    if java is None:
        return Finding("fault", "no java on PATH, and JAVA_HOME is not set", _INSTALL_JAVA)
    origin = f"{java}, {'from JAVA_HOME' if home else 'the first on PATH'}"
    try:
        done = _run([java, "-version"], 60.0)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding("fault", f"{origin}, does not run ({error})", _INSTALL_JAVA)
    # Java 8 calls itself "1.8.0_392". macOS without Java has a program of this name that prints no version
    found = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    if done.returncode or found is None:
        printed = " ".join((done.stderr + done.stdout).split())[:200]
        text = f"{origin}, is not a working Java (`java -version` exits with {done.returncode}: {printed})"
        return Finding("fault", text, _INSTALL_JAVA)
    if int(found[1]) < OLDEST_JAVA:
        return Finding("fault", f"{origin}, is Java {found[1]}: too old", _INSTALL_JAVA)
    return Finding("ok", f"{found[1]}, {origin}")


def _run(command: Sequence[str], seconds: float) -> subprocess.CompletedProcess[str]:
    """Run a program without input, for at most these seconds. Returns its status and what it printed."""
    nothing = subprocess.DEVNULL
    return subprocess.run(
        command, stdin=nothing, capture_output=True, text=True, errors="replace", timeout=seconds, check=False
    )


# The job has a process of its own, because it can hang or crash
_JOB: Final = (sys.executable, "-c", "import udfs.check; udfs.check.run_job()")

# Pattern in the output of the job, what is wrong, remedy
_FAULTS: Final = (
    (
        r"UnknownHostException|Name or service not known|nodename nor servname",
        "this machine's own name has no address",
        _SET_ADDRESS,
    ),
    (r"'sparkDriver' (?:failed|could not bind)", "Spark cannot listen on this machine's address", _SET_ADDRESS),
    (
        r"getSubject is (?:not supported|supported only if)",
        "this Java is too new for this Spark",
        "Use a Java that this Spark supports, such as 17 or 21: set JAVA_HOME to it.",
    ),
    (r"No space left on device", "the disk is full", "Free space, or set SPARK_LOCAL_DIRS to a folder with more."),
    (
        r"Failed to create (?:any )?local dir",
        "Spark cannot write its temporary files",
        "Set SPARK_LOCAL_DIRS to a folder that can be written.",
    ),
    (
        r"OutOfMemoryError|Cannot allocate memory|insufficient memory",
        "there is not enough memory to start Java",
        "End other programs, or set PYSPARK_SUBMIT_ARGS='--driver-memory 512m pyspark-shell'.",
    ),
    (
        r"PYTHON_VERSION_MISMATCH|different (?:minor )?version",
        "the workers run another version of Python than the driver",
        _SET_PYTHON,
    ),
    (
        r'Cannot run program "(?P<what>[^"]*python[^"]*)"',
        "{what}, the Python of the workers, does not run",
        _SET_PYTHON,
    ),
    (
        r"the Python of Spark's workers, (?P<what>\S+, has no module \S+)\. ",
        "the Python of the workers, {what}",
        _SET_PYTHON,
    ),
    (r"ModuleNotFoundError: (?P<what>[^\n]+)", "a package is missing: {what}", _INSTALL_PACKAGES),
    (
        r"Python worker failed to connect back",
        "a worker did not start within Spark's limit of ten seconds",
        "Run the check again when this machine is less busy. Allow connections on loopback if a firewall is in use.",
    ),
    (
        r"(?s)\A(?P<what>(?:(?!\s*Traceback).){,800}).*JAVA_GATEWAY_EXITED",
        "Java ended while Spark started:\n{what}",
        "Correct the options in JAVA_TOOL_OPTIONS, JDK_JAVA_OPTIONS, _JAVA_OPTIONS or PYSPARK_SUBMIT_ARGS.",
    ),
)


def _check_spark(command: Sequence[str] = _JOB, seconds: float = 300.0) -> Finding:
    """Check that a local session starts, and that its workers call an async function.

    Args:
        command: The program that runs the job. The last line of its output says what it found.
        seconds: Time limit of the job.
    """
    shown = " ".join(command)
    try:
        done = _run(command, seconds)
    except subprocess.TimeoutExpired:
        return Finding("fault", f"the job did not end within {seconds:g} seconds", f"See where it hangs: {shown}")
    if done.returncode == 0:
        return Finding("ok", done.stdout.strip().rpartition("\n")[2])
    output = done.stderr + done.stdout
    for pattern, text, remedy in _FAULTS:
        if match := re.search(pattern, output):
            return Finding("fault", text.format(**match.groupdict()), remedy)
    last = "\n    ".join(line for line in output.splitlines() if line.strip())[-1000:]
    return Finding("fault", f"the job ended with status {done.returncode}:\n    {last}", f"See all output: {shown}")


def run_job() -> None:
    """Start a local session, call a function for three rows, and print what was found."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - only the job needs it

    from ._dataframe import ordered_wait  # noqa: PLC0415 - as above

    spark = SparkSession.builder.master("local[1]").appName("udfs.check").getOrCreate()
    numbers = spark.range(3).selectExpr("cast(id as int) as number")
    rows = ordered_wait(numbers, _call, "twice int, python string", timeout=60.0).collect()
    spark.stop()
    assert [row.twice for row in rows] == [0, 2, 4], rows
    print(f"{spark.version}, three calls in Python {rows[0].python}")


async def _call(number: int) -> dict[str, object]:
    return {"twice": 2 * number, "python": f"{platform.python_version()}, {sys.executable}"}


CHECKS: Final[dict[str, Callable[[], Finding]]] = {
    "python": _check_python,
    "packages": _check_packages,
    "java": check_java,
    "spark": _check_spark,  # needs the others
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run checks and print a line for each.

    Args:
        arguments: The command line; None: `sys.argv`.

    Raises:
        SystemExit: There is a fault. The message has all of them, and a remedy for each.
    """
    parser = argparse.ArgumentParser(
        "python -m udfs.check", description="Check whether this machine can run udfs, and name a remedy for each fault."
    )
    shown = ", ".join(CHECKS)
    parser.add_argument("checks", nargs="*", metavar="CHECK", help=f"{shown}; default: all of them")
    names = parser.parse_args(arguments).checks or CHECKS
    for name in names:
        if name not in CHECKS:
            parser.error(f"no such check: {name!r} (checks: {shown})")
    faults: dict[str, Finding] = {}
    for name in CHECKS:
        if name in names:
            skipped = Finding("skipped", f"because of {' and '.join(faults)}")
            found = skipped if name == "spark" and faults else CHECKS[name]()
            print(f"{found.state:8} {name:9} {found.text}", flush=True)
            if found.state == "fault":
                faults[name] = found
    if faults:
        lines = (f"error: {name}: {found.text}.\n{found.remedy}" for name, found in faults.items())
        sys.exit("\n" + "\n\n".join(lines))


if __name__ == "__main__":
    main()
