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


@pytest.mark.parametrize("module", ["udfs", "udfs.http", "udfs.demo.service"])
def test_the_module_can_be_imported_without_pyspark(module: str) -> None:
    code = f"import sys; sys.modules.update(dict.fromkeys(['pyspark', 'pandas', 'pyarrow'])); import {module}"
    subprocess.run([sys.executable, "-c", code], check=True)
