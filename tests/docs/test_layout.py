"""The layout at the top of a package names every module in it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = [
    "trio_asyncio_io",
    "trio_asyncio_io/_core",
    "trio_asyncio_io/gates",
    "trio_asyncio_io/report",
    "trio_asyncio_io/trace",
    "udfs",
    "udfs/check",
    "udfs/http",
    "udfs/http_columns",
]


@pytest.mark.parametrize("package", PACKAGES)
def test_a_layout_names_each_module(package: str) -> None:
    [layout] = re.findall(
        r"^# The layout\b.*?^$", (ROOT / package / "__init__.py").read_text(), re.DOTALL | re.MULTILINE
    )
    modules = {path.stem for path in ROOT.joinpath(package).glob("*") if path.suffix == ".py" or path.is_dir()}
    assert modules - set(re.findall(r"\w+", layout)) <= {"__init__", "__pycache__"}
