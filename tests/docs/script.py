"""Imports the scripts of .ci, which write parts of the pages."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType


def script(name: str) -> ModuleType:
    """The script `.ci/<name>.py` as a module."""
    path = Path(__file__).parents[2] / ".ci" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"ci_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
