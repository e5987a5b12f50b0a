"""A Spark session and a job with a few calls, in a process of its own."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from typing import Any, Final

from ._finding import Finding

__all__ = ["check_spark"]

COMMAND: Final = (sys.executable, "-m", "udfs.check._job")
SECONDS: Final = 300.0
_LINES: Final = 8

_NO_ADDRESS: Final = "Set SPARK_LOCAL_IP=127.0.0.1, or add this machine's name to /etc/hosts."
_OTHER_JAVA: Final = "Use a Java that this Spark supports, such as 17 or 21: set JAVA_HOME to it."

# By a pattern in the output of the job: what is wrong, and the remedy
_FAULTS: Final = {
    r"UnknownHostException|Name or service not known|nodename nor servname": (
        "this machine's own name has no address",
        _NO_ADDRESS,
    ),
    r"Service 'sparkDriver' (?:failed|could not bind)": ("Spark cannot listen on this machine's address", _NO_ADDRESS),
    r"UnsupportedClassVersionError": ("this Java is too old for this Spark", _OTHER_JAVA),
    r"getSubject is (?:not supported|supported only if)": ("this Java is too new for this Spark", _OTHER_JAVA),
    r"No space left on device": ("the disk is full", "Free space, or set SPARK_LOCAL_DIRS to a folder with more."),
    r"OutOfMemoryError|Cannot allocate memory|insufficient memory": (
        "there is not enough memory to start Java",
        "End other programs, or set PYSPARK_SUBMIT_ARGS='--driver-memory 512m pyspark-shell'.",
    ),
    r"PYTHON_VERSION_MISMATCH|different (?:minor )?version": (
        "the workers run another version of Python than the driver",
        f"Set PYSPARK_PYTHON={sys.executable}, also in spark-defaults.conf.",
    ),
    r"the Python of Spark's workers, (?P<what>\S+, has no module \S+)\. ": (
        "the Python of the workers, {what}",
        f"Set PYSPARK_PYTHON={sys.executable}, also in spark-defaults.conf.",
    ),
    r"ModuleNotFoundError: (?P<what>[^\n]+)": (
        "a package is missing: {what}",
        "Install it: pip install 'trio-asyncio-io[spark]'",
    ),
    r"Python worker failed to connect back": (
        "a worker did not start within Spark's limit of ten seconds",
        "Run the check again when this machine is less busy. Allow connections on loopback if a firewall is in use.",
    ),
}
_UNKNOWN: Final = "Read the output of the job above. For all of it: {command}"


def check_spark(command: Sequence[str] = COMMAND, seconds: float = SECONDS) -> Finding:
    """Check that a local session starts, and that its workers call an async function.

    Args:
        command: The program that runs the job and prints its report.
        seconds: The limit for the job.
    """
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=seconds, check=False, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        text = f"the job did not end within {seconds:g} seconds"
        return Finding("fault", text, f"See where it hangs: {' '.join(command)}")
    report = _report_of(done.stdout)
    if done.returncode or report is None:
        return _fault(done.stderr + done.stdout, done.returncode, command)
    if report["twice"] != [0, 2, 4]:
        return Finding(
            "fault", f"the job has wrong results: {report['twice']}", _UNKNOWN.format(command=" ".join(command))
        )
    text = (
        f"{report['spark']}, started in {report['start_seconds']:.1f} s; a job with three calls took "
        f"{report['seconds']:.1f} s in Python {report['version']}, {report['python']}"
    )
    return Finding("ok", text)


def _report_of(output: str) -> dict[str, Any] | None:
    lines = output.strip().splitlines()
    try:
        report = json.loads(lines[-1]) if lines else None
    except ValueError:
        return None
    return report if isinstance(report, dict) else None


def _fault(output: str, status: int, command: Sequence[str]) -> Finding:
    for pattern, (text, remedy) in _FAULTS.items():
        match = re.search(pattern, output)
        if match:
            return Finding("fault", text.format(**match.groupdict()), remedy)
    last = "\n    ".join(line for line in output.splitlines() if line.strip())[-_LINES * 120 :]
    return Finding(
        "fault", f"the job ended with status {status}:\n    {last}", _UNKNOWN.format(command=" ".join(command))
    )
