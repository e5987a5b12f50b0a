"""Optional packages are imported on first use, and an error names the extra to install."""

from __future__ import annotations

import subprocess
import sys

import pytest

# Makes imports of the named packages fail, as if they were not installed
WITHOUT = """
import sys
for name in {names}:
    sys.modules[name] = None
"""


def python(code: str) -> str:
    """The output of a new interpreter; the last line of its traceback if it fails."""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    return (ran.stdout or ran.stderr).strip().splitlines()[-1]


@pytest.mark.parametrize("module", ["trio_asyncio_io", "trio_asyncio_io.policies", "trio_asyncio_io.testing"])
def test_the_operator_imports_only_trio(module: str) -> None:
    names = ("asyncio", "httpx", "numpy", "opentelemetry", "pandas", "pyarrow", "pyspark", "rich", "udfs")
    code = f"import sys, {module}\nprint([name for name in {names} if name in sys.modules])"
    assert python(code) == "[]"


def test_the_summary_does_not_need_rich() -> None:
    code = "from trio_asyncio_io.progress import summary\nimport sys\nprint('rich' in sys.modules)"
    assert python(code) == "False"


def test_without_rich_progress_names_the_extra_to_install() -> None:
    code = WITHOUT.format(names=["rich"]) + "from trio_asyncio_io.progress import progress\nprogress(None)"
    assert python(code) == "ImportError: progress needs rich: pip install 'trio-asyncio-io[progress]'"


def test_without_the_api_the_observer_names_the_extra_to_install() -> None:
    code = WITHOUT.format(names=["opentelemetry"]) + "import trio_asyncio_io.opentelemetry"
    assert python(code).endswith("needs OpenTelemetry's API: pip install 'trio-asyncio-io[opentelemetry]'")


def test_the_observer_needs_only_the_api() -> None:
    code = "import sys, trio_asyncio_io.opentelemetry\nprint('opentelemetry.sdk' in sys.modules)"
    assert python(code) == "False"
