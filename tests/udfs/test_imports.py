"""The package: its public names, and optional dependencies."""

from __future__ import annotations

import subprocess
import sys

import pytest

import udfs


def test_every_public_name_can_be_imported() -> None:
    assert {name for name in udfs.__all__ if getattr(udfs, name).__name__ != name} == set()
    assert set(udfs.__all__) <= set(dir(udfs))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'udfs' has no attribute 'odered_wait'"):
        udfs.odered_wait  # noqa: B018 - that is the test


def import_without(packages: list[str], module: str) -> subprocess.CompletedProcess[str]:
    """Import a module in a new interpreter, as if the packages were not installed."""
    code = f"import sys; sys.modules.update(dict.fromkeys({packages})); import {module}"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("module", ["udfs", "udfs.http", "udfs.http.httpx2", "udfs.demo.service"])
def test_the_module_can_be_imported_without_pyspark(module: str) -> None:
    done = import_without(["pyspark", "pandas", "pyarrow"], module)
    assert done.returncode == 0, done.stderr


def test_the_http_client_needs_neither_spark_nor_the_operator_nor_httpx2() -> None:
    names = ("asyncio", "httpx2", "pandas", "pyarrow", "pyspark", "trio_asyncio_io")
    code = f"import sys, udfs.http; print([name for name in {names} if name in sys.modules])"
    shown = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert shown.strip() == "[]"


def test_without_httpx2_the_error_names_the_extra_to_install() -> None:
    error = import_without(["httpx2"], "udfs.http.httpx2").stderr.splitlines()[-1]
    assert error == "ImportError: udfs.http.httpx2 needs httpx2: pip install 'trio-asyncio-io[httpx2]'"
