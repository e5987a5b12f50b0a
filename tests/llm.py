"""The stand-in for paid LLM services in a thread, so that a test can change it while it runs."""

from __future__ import annotations

import runpy
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from tests.support import PATIENCE
from tests.wheel import ROOT
from udfs.demo._server import listener
from udfs.demo.llm import LLMApp

EXAMPLE = ROOT / "docs" / "examples" / "paid_llm.py"


@contextmanager
def served(app: LLMApp) -> Iterator[str]:
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
    """The names of the example, which calls this service."""
    names = runpy.run_path(str(EXAMPLE))
    names["Rater"].open.__globals__["SERVICE"] = url
    return names
