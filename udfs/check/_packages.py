"""The driver's Python, and the packages of the extra `spark` in it."""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Final

from ._finding import Finding

__all__ = ["OLDEST_PYTHON", "check_packages", "check_python"]

OLDEST_PYTHON: Final = (3, 11)
_DISTRIBUTION: Final = "trio-asyncio-io"
_INSTALL: Final = f"Install them: pip install '{_DISTRIBUTION}[spark]'"
_REQUIREMENT: Final = re.compile(r"""^([\w-]+)([^;]*);\s*extra\s*==\s*['"]spark['"]$""")
_SHOWN: Final = ("pyspark", "pandas", "pyarrow")


def check_python() -> Finding:
    """Check the version of this Python."""
    text = f"{platform.python_version()}, {sys.executable}"
    if sys.version_info < OLDEST_PYTHON:
        remedy = "Install Python 3.11 or newer, and create a virtual environment with it."
        return Finding("fault", f"{text}: too old", remedy)
    return Finding("ok", text)


def check_packages() -> Finding:
    """Check that the packages of the extra are installed and fit, and that SPARK_HOME is not another Spark."""
    try:
        requirements = requires(_DISTRIBUTION) or []
    except PackageNotFoundError:
        return Finding("fault", f"{_DISTRIBUTION} is not installed in {sys.prefix}", _INSTALL)
    problems = list(_problems(requirements))
    if problems:
        return Finding("fault", "; ".join(problems), _INSTALL)
    return _check_spark_home() or Finding("ok", ", ".join(f"{name} {version(name)}" for name in _SHOWN))


def _problems(requirements: list[str]) -> Iterator[str]:
    for requirement in requirements:
        match = _REQUIREMENT.match(requirement)
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
    """Whether a version is within limits such as ">=3.5,<4.4"."""
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
