"""Exits with an error and a remedy if PySpark would not find a suitable Java."""

import os
import re
import shutil
import subprocess
import sys

OLDEST = 17
REMEDY = (
    f"Spark needs Java {OLDEST} or newer: for example `apt-get install openjdk-17-jre-headless`, or "
    "`brew install openjdk@17`. Set JAVA_HOME if it is not the first java on PATH."
)


def find_java() -> str | None:
    """The java that PySpark starts: that of JAVA_HOME, even if it is broken, otherwise the first on PATH."""
    home = os.environ.get("JAVA_HOME")
    return os.path.join(home, "bin", "java") if home else shutil.which("java")  # noqa: PTH118 - printed unchanged


def major_version(report: str) -> int | None:
    """17 for `openjdk version "17.0.15"`, 8 for `java version "1.8.0_392"`, None without a version."""
    numbers = re.search(r'version "(?:1\.)?(\d+)', report)
    return int(numbers[1]) if numbers else None


def problem_with(java: str | None) -> str | None:
    """A sentence on what is wrong with this java, or None."""
    if java is None:
        return "no java on PATH, and JAVA_HOME is not set."
    origin = "from JAVA_HOME" if os.environ.get("JAVA_HOME") else "the first on PATH"
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{java}, {origin}, does not run ({error})."
    major = major_version(answer.stderr + answer.stdout)
    if answer.returncode or major is None:
        # macOS without Java has a stub of this name
        return f"{java}, {origin}, is not a working Java (`java -version` exits with {answer.returncode})."
    if major < OLDEST:
        return f"{java}, {origin}, is Java {major}: too old."
    return None


if problem := problem_with(find_java()):
    sys.exit(f"error: {problem}\n{REMEDY}")
