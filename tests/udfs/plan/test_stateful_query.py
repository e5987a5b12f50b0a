"""The requirements of carry-over that are checked without Spark."""

from __future__ import annotations

import sys

import pytest

from udfs._plan.stateful_query import MESSAGES, _check_protobuf

pytest.importorskip("pyspark.sql.streaming.proto", reason="this PySpark has no state for Python")
runtime_version = pytest.importorskip("google.protobuf.runtime_version")


@pytest.fixture(autouse=True)
def _unimported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, MESSAGES, raising=False)


def test_the_installed_protobuf_fits() -> None:
    _check_protobuf()


def test_a_missing_protobuf_is_an_error_that_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "google.protobuf", None)
    message = r"^carry_over needs google\.protobuf: in a clone, pip install '\.\[carry-over\]'$"
    with pytest.raises(ModuleNotFoundError, match=message):
        _check_protobuf()


def test_a_protobuf_that_is_too_old_is_an_error_with_the_version_that_spark_needs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runtime_version, "MAJOR", 4)
    message = r"^carry_over needs a newer protobuf on the driver and on the workers: .*gencode \d+\.\d+\.\d+"
    with pytest.raises(ImportError, match=message):
        _check_protobuf()
