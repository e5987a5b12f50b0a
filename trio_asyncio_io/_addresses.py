"""Public addresses: a public name belongs to the public module that exports it.

A pickle finds a class by its module's name, and a traceback shows it. With the address of the public module, neither
depends on the file in which the class is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["publish"]


def publish(namespace: Mapping[str, Any]) -> None:
    """Set `__module__` of what a public module exports from private modules to the public module.

    Args:
        namespace: The module's `globals()`, with `__all__`.
    """
    public = namespace["__name__"]
    for name in namespace["__all__"]:
        value = namespace[name]
        if "._" in getattr(value, "__module__", ""):
            value.__module__ = public
