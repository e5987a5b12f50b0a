"""The public functions and classes of both packages, by their names."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

MODULES = [
    *(
        f"trio_asyncio_io{name}"
        for name in ("", ".adapters", ".blocking", ".checkpoints", ".keywords", ".opentelemetry")
    ),
    *(f"trio_asyncio_io{name}" for name in (".policies", ".progress", ".report", ".testing", ".trace")),
    *(f"udfs{name}" for name in ("", ".http", ".http.httpx2", ".http_columns", ".progress")),
]


def _public() -> dict[str, Any]:
    found = {}
    for module in map(importlib.import_module, MODULES):
        for name in module.__all__:
            each = getattr(module, name)
            if (inspect.isclass(each) or inspect.isfunction(each)) and each.__module__ == module.__name__:
                found[f"{module.__name__}.{name}"] = each
    return found


PUBLIC = _public()
