"""The package: its public names, and what can be imported without the packages of the extras."""

from __future__ import annotations

from pkgutil import iter_modules

import pytest

import udfs
from tests.absent import run_without

pytestmark = pytest.mark.processes

SPARK = {"pyspark", "pandas", "pyarrow", "numpy", "google", "py4j"}
HTTP = {"httpx", "httptools"}


def test_every_public_name_can_be_imported() -> None:
    assert {name for name in udfs.__all__ if getattr(udfs, name).__name__ != name} == set()
    assert set(udfs.__all__) <= set(dir(udfs))


def test_the_names_that_the_package_uses_itself_are_not_listed() -> None:
    assert {name for name in dir(udfs) if not name.startswith("_")} - set(udfs.__all__) <= {
        each.name for each in iter_modules(udfs.__path__)
    }


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'udfs' has no attribute 'odered_wait'"):
        udfs.odered_wait  # noqa: B018 - that is the test


@pytest.mark.parametrize("absent", [SPARK | HTTP, SPARK, {"pandas"}], ids=["spark and http", "spark", "pandas"])
def test_the_package_lists_its_names_without_the_packages_of_the_extras(absent: set[str]) -> None:
    code = "import udfs\nprint(sorted(set(udfs.__all__) - set(dir(udfs))))\nudfs.AsyncFunction, udfs.transient"
    assert run_without(absent, code) == "[]"


@pytest.mark.parametrize("module", ["udfs.http", "udfs.http.httpx2", "udfs.demo.service"])
def test_the_module_works_without_spark(module: str) -> None:
    assert run_without(SPARK, f"import {module}\nprint({module}.__name__)") == module


@pytest.mark.parametrize(
    ("statement", "needed"),
    [
        ("from udfs import unordered_wait", "udfs.unordered_wait needs pyspark: in a clone, pip install '.[spark]'"),
        ("import udfs; udfs.summary", "udfs.summary needs pyspark: in a clone, pip install '.[spark]'"),
        ("import udfs.progress", "udfs.progress needs pyspark: in a clone, pip install '.[spark,progress]'"),
        ("import udfs.http_columns", "udfs.http_columns needs pyspark: in a clone, pip install '.[spark,http]'"),
        ("import udfs.http", "udfs.http needs httpx: in a clone, pip install '.[http]'"),
        ("import udfs.http.httpx2", "udfs.http.httpx2 needs httpx2: in a clone, pip install '.[httpx2]'"),
        ("import udfs.demo.__main__", "the demo needs httpx: in a clone, pip install '.[demo]'"),
        ("import udfs.demo.service", "the demo's lookup service needs uvicorn: in a clone, pip install '.[demo]'"),
    ],
    ids=lambda each: each.partition(": pip")[0],
)
def test_the_error_for_a_missing_package_names_the_extra_to_install(statement: str, needed: str) -> None:
    missing = {"pyspark", "uvicorn", "httpx2" if "httpx2" in statement else "httpx"}
    assert run_without(missing, statement) == f"ModuleNotFoundError: {needed}"


def test_the_http_client_needs_neither_spark_nor_the_operator_nor_httpx2() -> None:
    names = ("asyncio", "httpx2", "pandas", "pyarrow", "pyspark", "trio_asyncio_io")
    code = f"import sys, udfs.http; print([name for name in {names} if name in sys.modules])"
    assert run_without(set(), code) == "[]"
