"""The Python of Spark's workers in a local session: PYSPARK_PYTHON, or the driver's."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import Final

from ._finding import Finding

__all__ = ["check_worker"]

PACKAGES: Final = ("pyspark", "pandas", "pyarrow", "trio", "trio_asyncio_io", "udfs")
_SECONDS: Final = 120
_CODE: Final = """
import importlib.util, json, sys
lacking = [name for name in sys.argv[1:] if importlib.util.find_spec(name) is None]
print(json.dumps({"version": list(sys.version_info[:2]), "lacking": lacking}))
"""


def check_worker() -> Finding:
    """Check that the workers' Python has the packages, and the version of the driver's."""
    setting = os.environ.get("PYSPARK_PYTHON")
    if not setting:
        return Finding("ok", "the driver's Python, because PYSPARK_PYTHON is not set")
    found = shutil.which(setting)
    text = f"PYSPARK_PYTHON is {setting}"
    remedy = f"Unset PYSPARK_PYTHON, or set it to {sys.executable}"
    if found is None:
        return Finding("fault", f"{text}, which is not a program", remedy)
    try:
        done = subprocess.run(
            [found, "-c", _CODE, *PACKAGES], capture_output=True, text=True, timeout=_SECONDS, check=True
        )
        report = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        return Finding("fault", f"{text}, which does not run as a Python ({error})", remedy)
    if tuple(report["version"]) != sys.version_info[:2]:
        worker = ".".join(map(str, report["version"]))
        driver = ".".join(map(str, sys.version_info[:2]))
        return Finding("fault", f"{text}, which is Python {worker}; the driver's is {driver}", remedy)
    if report["lacking"]:
        return Finding("fault", f"{text}, which lacks {', '.join(report['lacking'])}", remedy)
    return Finding("ok", text)
