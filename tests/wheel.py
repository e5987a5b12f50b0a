"""The wheel, installed as a user installs it: in an environment that cannot import the source tree."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

__all__ = ["ROOT", "environment_of_a_user", "install"]

ROOT = Path(__file__).parents[1]

# What a developer's shell, or the justfile, sets and a user's shell does not
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
    """The environment for a script, with these variables more."""
    return {name: value for name, value in os.environ.items() if name not in _UNSET} | more


def install(folder: Path) -> Path:
    """Build the wheel and install it into a new environment, which shares the dependencies of this one.

    Returns:
        The environment's Python.
    """
    dist, room = folder / "dist", folder / "venv"
    _run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(dist), str(ROOT))
    [wheel] = dist.glob("*.whl")
    venv.create(room)
    python = room / "bin" / "python"
    _run(sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps", "--no-index", str(wheel))
    # After the installation, and by a path that makes Python look for no further `.pth` files: the source tree, which
    # is installed in this environment by such a file, stays out
    places = {"base": str(room), "platbase": str(room)}
    pth = Path(sysconfig.get_path("purelib", "venv", places), "dependencies.pth")
    pth.write_text("".join(f"{sysconfig.get_path(kind)}\n" for kind in ("purelib", "platlib")))
    return python


def _run(*command: str) -> None:
    done = subprocess.run(command, env=environment_of_a_user(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
