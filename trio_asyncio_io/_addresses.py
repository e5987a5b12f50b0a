"""Public addresses: the `__module__` of a public name is the public module that exports it.

Pickles look up a class by the name of its module, and tracebacks show that name. With the public module, neither
depends on the file that defines the class.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["publish"]


def publish(namespace: Mapping[str, Any]) -> None:
    """Set the `__module__` of all names that a public module exports from its private modules.

    Args:
        namespace: The module's `globals()`, with `__all__`.
    """
    public = namespace["__name__"]
    for name in namespace["__all__"]:
        value = namespace[name]
        if "._" in getattr(value, "__module__", ""):
            value.__module__ = public
