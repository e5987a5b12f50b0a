"""The public functions and classes of both packages, by their names."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import trio_asyncio_io
import udfs

# Programs, and their parts
LEFT_OUT = ("udfs.check", "udfs.demo")


def _modules() -> Iterator[ModuleType]:
    """The modules without an underscore in their address."""
    for package in (trio_asyncio_io, udfs):
        yield package
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if "._" not in found.name and not found.name.startswith(LEFT_OUT):
                yield importlib.import_module(found.name)


def _public() -> dict[str, Any]:
    found = {}
    for module in _modules():
        for name in getattr(module, "__all__", ()):
            each = getattr(module, name)
            if (inspect.isclass(each) or inspect.isfunction(each)) and each.__module__ == module.__name__:
                found[f"{module.__name__}.{name}"] = each
    return found


PUBLIC = _public()
