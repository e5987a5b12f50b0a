"""The Java that PySpark would start."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from typing import Final

from ._finding import Finding

__all__ = ["check_java"]

OLDEST: Final = 17
REMEDY: Final = (
    f"Install Java {OLDEST} or newer: for example `apt-get install openjdk-17-jre-headless`, or "
    "`brew install openjdk@17`. Set JAVA_HOME if it is not the first java on PATH."
)
_SECONDS: Final = 60


def check_java() -> Finding:
    """Check that there is a Java, that it runs, and that it is new enough for Spark."""
    java = _find_java()
    if java is None:
        return Finding("fault", "no java on PATH, and JAVA_HOME is not set", REMEDY)
    origin = f"{java}, {'from JAVA_HOME' if os.environ.get('JAVA_HOME') else 'the first on PATH'}"
    try:
        report = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding("fault", f"{origin}, does not run ({error})", REMEDY)
    major = _major_version(report.stderr + report.stdout)
    if report.returncode or major is None:  # macOS without Java has a stub of this name
        text = f"{origin}, is not a working Java (`java -version` exits with {report.returncode})"
        return Finding("fault", text, REMEDY)
    if major < OLDEST:
        return Finding("fault", f"{origin}, is Java {major}: too old", REMEDY)
    return Finding("ok", f"{major}, {origin}")


def _find_java() -> str | None:
    """The java that PySpark starts: that of JAVA_HOME, even if it is broken, otherwise the first on PATH."""
    home = os.environ.get("JAVA_HOME")
    return os.path.join(home, "bin", "java") if home else shutil.which("java")  # noqa: PTH118 - printed unchanged


def _major_version(report: str) -> int | None:
    """17 for `openjdk version "17.0.15"`, 8 for `java version "1.8.0_392"`, None without a version."""
    numbers = re.search(r'version "(?:1\.)?(\d+)', report)
    return int(numbers[1]) if numbers else None
