"""Optional packages are imported on first use, and an error names the extra to install."""

from __future__ import annotations

import pytest

from tests.absent import run_without

pytestmark = pytest.mark.processes

MODULES = (
    "trio_asyncio_io",
    *(f"trio_asyncio_io.{name}" for name in ("checkpoints", "policies", "progress", "testing")),
)


def test_the_operator_imports_only_trio_and_the_standard_library() -> None:
    """It does not import asyncio either, which would take as long as Trio."""
    code = f"""
import sys, trio, trio.testing
import zoneinfo  # it reads the configuration of this Python, a module whose name depends on the platform
before = {{name.partition(".")[0] for name in sys.modules}}
import {", ".join(MODULES)}
new = {{name.partition(".")[0] for name in sys.modules}} - before
print(sorted(new - sys.stdlib_module_names), "asyncio" in sys.modules)
"""
    assert run_without(set(), code) == "['trio_asyncio_io'] False"


def test_without_rich_progress_names_the_extra_to_install() -> None:
    code = "import trio_asyncio_io.progress\nfrom trio_asyncio_io.integration import display_on\ndisplay_on()"
    assert run_without({"rich"}, code) == "ImportError: progress needs rich: in a clone, pip install '.[progress]'"


def test_without_the_api_the_observer_names_the_extra_to_install() -> None:
    assert run_without({"opentelemetry"}, "import trio_asyncio_io.opentelemetry").endswith(
        "needs OpenTelemetry's API: in a clone, pip install '.[opentelemetry]'"
    )


def test_the_observer_needs_only_the_api() -> None:
    code = "import sys, trio_asyncio_io.opentelemetry\nprint('opentelemetry.sdk' in sys.modules)"
    assert run_without(set(), code) == "False"
