"""Engines: peers in a process and an environment of their own, which `just bench-setup` creates."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from ._child import Child, ChildError, start
from ._contenders import SETUP
from ._latencies import all_latencies

__all__ = ["ENGINES", "FLINK", "PYFLINK", "Engine", "engine_versions"]

ENVIRONMENTS = Path(__file__).parents[1] / ".bench"
CHILDREN = Path(__file__).parent / "children"
JAVA_OPTIONS = (
    "-Xmx1g",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-opens=java.base/java.util=ALL-UNNAMED",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
)


@dataclass(frozen=True, slots=True)
class Engine:
    """A peer in a process of its own.

    Attributes:
        name: Its name in tables.
        opened: A context manager that starts the child and ends it.
        missing: Returns how to install the missing parts, or an empty string.
        elements: Sizes of a long and of a short job: their difference excludes the start of a job.
        warm_up: Size of the job before the measurements.
    """

    name: str
    opened: Callable[[], AbstractContextManager[Child]]
    missing: Callable[[], str]
    elements: tuple[int, int]
    warm_up: int = 1_000


def _python(folder: str) -> Path:
    return ENVIRONMENTS / folder / "bin/python"


def _in_python(name: str, peer: str, folder: str, elements: tuple[int, int]) -> Engine:
    @contextmanager
    def opened() -> Iterator[Child]:
        with _latencies_file() as latencies, start([_python(folder), CHILDREN / f"with_{peer}.py", latencies]) as child:
            yield child

    def missing() -> str:
        return "" if any(_packages(folder, peer)) else f"not installed: {SETUP}"

    return Engine(name, opened, missing, elements)


def _packages(folder: str, package: str) -> list[Path]:
    return list((ENVIRONMENTS / folder).glob(f"lib/python*/site-packages/{package}"))


@contextmanager
def _flink() -> Iterator[Child]:
    """Flink's local cluster. Its job is compiled with the machine's JDK."""
    with TemporaryDirectory() as folder, _latencies_file() as latencies:
        jars = _jars() + "/*"
        command = [_tool("javac"), "-d", folder, "-cp", jars, CHILDREN / "AsyncJob.java"]
        compiled = subprocess.run(command, check=False, capture_output=True, text=True)
        if compiled.returncode:
            raise ChildError(f"javac: {compiled.stderr.strip()[-200:]}")
        classes = os.pathsep.join((folder, jars))
        with start([_tool("java"), *JAVA_OPTIONS, "-cp", classes, "AsyncJob", latencies]) as child:
            yield child


def _tool(name: str) -> str:
    home = os.environ.get("JAVA_HOME")
    return shutil.which(name, path=str(Path(home, "bin"))) or name if home else name


def _jars() -> str:
    """The folder of jars in `apache-flink-libraries`, or an empty string."""
    return next((str(path) for path in _packages("flink", "pyflink/lib")), "")


def _flink_missing() -> str:
    if not _jars():
        return f"not installed: {SETUP}"
    if not shutil.which(_tool("javac")):
        return "not installed: a JDK of 17 or newer, with javac"
    return ""


@contextmanager
def _latencies_file() -> Iterator[Path]:
    with TemporaryDirectory() as folder:
        path = Path(folder, "latencies")
        path.write_text("\n".join(map(repr, all_latencies())), encoding="utf-8")
        yield path


def engine_versions() -> dict[str, str]:
    """The versions of the engines that are installed."""
    found: dict[str, str] = {}
    for folder in ("daft", "flink", "pathway"):
        for path in _packages(folder, f"*{folder}*.dist-info"):
            name, version = path.name.removesuffix(".dist-info").split("-")[:2]
            found[name.replace("_", "-")] = version
    return found


PYFLINK = _in_python("PyFlink", "pyflink", "flink", (6_000, 1_000))
FLINK = Engine("Flink, in Java", _flink, _flink_missing, (2_000_000, 1_000), 2_000_000)
ENGINES = (
    _in_python("Daft (no timeout)", "daft", "daft", (20_000, 1_000)),
    _in_python("Pathway", "pathway", "pathway", (20_000, 1_000)),
    PYFLINK,
    FLINK,
)
