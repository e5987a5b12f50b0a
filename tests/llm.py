"""The stand-in for paid LLM services in a thread, so that a test can change it while it runs."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import uvicorn

from tests.support import PATIENCE
from tests.wheel import ROOT
from udfs.demo.service import listener

EXAMPLES = ROOT / "docs" / "examples"
EXAMPLE = EXAMPLES / "paid_llm.py"
SERVICE = EXAMPLES / "services" / "llm_service.py"


def loaded(path: Path) -> ModuleType:
    """The module of an example."""
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


service = loaded(SERVICE)
LLMApp: Any = service.LLMApp


@contextmanager
def served(app: Any) -> Iterator[str]:
    """The URL of the service while the block runs."""
    server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_level="error"))
    with listener(0) as place:
        thread = threading.Thread(target=server.run, args=([place],), name="service")
        thread.start()
        try:
            yield f"http://127.0.0.1:{place.getsockname()[1]}"
        finally:
            server.should_exit = server.force_exit = True
            thread.join(PATIENCE)


def example(url: str) -> dict[str, Any]:
    """The names of the examples, which call this service."""
    paths = sys.path.copy()
    sys.path.insert(0, str(EXAMPLES))
    try:
        main, *others = map(import_module, ("paid_llm", "paid_llm_providers", "paid_llm_tasks"))
    finally:
        sys.path[:] = paths
    main.SERVICE = url
    return {name: value for module in (*others, main) for name, value in vars(module).items()}
