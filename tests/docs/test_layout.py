"""The layouts name every module: those that a reader of the code finds, and that of a reader of the docs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("package", ["trio_asyncio_io", "udfs"])
@pytest.mark.parametrize("layout", ["{package}/__init__.py", "docs/design.md"])
def test_a_layout_names_each_module(package: str, layout: str) -> None:
    text = ROOT.joinpath(layout.format(package=package)).read_text()
    [picture] = re.findall(r"^# The layout\..*?^$|^## Two packages.*?^## ", text, re.DOTALL | re.MULTILINE)
    modules = {path.stem for path in ROOT.joinpath(package).glob("*") if path.suffix == ".py" or path.is_dir()}
    assert modules - set(re.findall(r"\w+", picture)) <= {"__init__", "__pycache__"}
