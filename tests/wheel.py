"""The wheel, installed in an environment from which the source tree cannot be imported."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]

# Variables that a developer's shell or the justfile may set, and a user's shell does not. Without bytecode, each of
# Spark's workers would compile PySpark again: seconds per task
_UNSET = (
    "COLUMNS",
    "JAVA_OPTS",
    "PYSPARK_DRIVER_PYTHON",
    "PYSPARK_PYTHON",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONPATH",
    "SPARK_CONNECT_MODE_ENABLED",
    "SPARK_HOME",
    "SPARK_REMOTE",
)


def environment_of_a_user(**more: str) -> dict[str, str]:
    """The environment for a script, with these additional variables."""
    return {name: value for name, value in os.environ.items() if name not in _UNSET} | more


def install(folder: Path) -> Path:
    """Build the wheel and install it into a new environment that shares the dependencies of this one.

    Returns:
        The environment's Python.
    """
    dist, room = folder / "dist", folder / "venv"
    _run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(dist), str(ROOT))
    [wheel] = dist.glob("*.whl")
    venv.create(room)
    python = room / "bin" / "python"
    _run(sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps", "--no-index", str(wheel))
    # Only now, and as a path whose own `.pth` files Python ignores: one of them would add the source tree
    places = {"base": str(room), "platbase": str(room)}
    pth = Path(sysconfig.get_path("purelib", "venv", places), "dependencies.pth")
    pth.write_text("".join(f"{sysconfig.get_path(kind)}\n" for kind in ("purelib", "platlib")))
    return python


def _run(*command: str) -> None:
    done = subprocess.run(command, env=environment_of_a_user(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
