"""The layout comment of a package names each of its modules and folders."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import trio_asyncio_io
import udfs

PACKAGES = [Path(package.__file__).parent for package in (trio_asyncio_io, udfs)]
LAYOUTS = {
    f"{package.name}/{path.parent.relative_to(package)}": (path.parent, found[0])
    for package in PACKAGES
    for path in sorted(package.rglob("__init__.py"))
    if (found := re.search(r"^# The layout.*\n(?:#.*\n)+", path.read_text(encoding="utf-8"), re.MULTILINE))
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_layout_comment_names_each_module_of_its_folder(name: str) -> None:
    folder, layout = LAYOUTS[name]
    modules = {path.stem for path in folder.glob("*.py")} | {path.parent.name for path in folder.glob("*/__init__.py")}
    assert modules - {"__init__"} - set(re.findall(r"\w+", layout)) == set()


@pytest.mark.parametrize("room", [".", "_account", "_core", "_files", "_operator", "_values", "_watch"])
def test_each_room_of_the_operator_has_a_layout_comment(room: str) -> None:
    assert f"trio_asyncio_io/{room}" in LAYOUTS
