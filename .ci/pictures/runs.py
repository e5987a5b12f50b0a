"""The scripts of docs/examples, and runs of them on a virtual clock."""

from __future__ import annotations

import importlib.util
from collections.abc import Awaitable, Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from types import ModuleType
from typing import Any

import trio
from trio.testing import MockClock

from trio_asyncio_io._watch.events import Trace
from trio_asyncio_io.trace import TraceRecorder

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


def script(name: str) -> ModuleType:
    """A new module with the content of this script."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(function: Callable[..., Awaitable[Any]], *arguments: Any, **options: Any) -> Any:
    """Run an async function on a virtual clock, without its output."""

    async def main() -> Any:
        return await function(*arguments, **options)

    with redirect_stdout(StringIO()):
        return trio.run(main, clock=MockClock(autojump_threshold=0))


def record(name: str, function: Callable[..., Awaitable[Any]], *arguments: Any, **options: Any) -> Trace:
    """The trace of an operator that this function runs with `observer=`."""
    recorder = TraceRecorder(name=name, values=True)
    run(function, *arguments, observer=recorder, **options)
    return recorder.trace()
