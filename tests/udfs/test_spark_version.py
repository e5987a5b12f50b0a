"""What a version of Spark lacks is refused with a sentence that names the version."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyspark
import pytest

from udfs._spark_version import check_carries_over, check_reports_progress


def frame(**methods: Any) -> Any:
    """A stand-in for a DataFrame whose groups have these methods."""
    return SimpleNamespace(groupBy=lambda: SimpleNamespace(**methods))


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ("3.5.9", r"carry_over needs Spark 4\.0 or newer, and this is 3\.5\.9: upgrade Spark, or omit carry_over"),
        (
            "4.0.5",
            r"carry_over needs Spark 4\.1 or newer in a remote session, .* 4\.0\.5: upgrade",
        ),
    ],
)
def test_a_spark_without_state_for_python_is_refused(
    monkeypatch: pytest.MonkeyPatch, version: str, message: str
) -> None:
    monkeypatch.setattr(pyspark, "__version__", version)
    with pytest.raises(RuntimeError, match=message):
        check_carries_over(frame())
    check_carries_over(frame(transformWithStateInPandas=None))


def test_a_remote_session_without_progress_reports_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyspark, "__version__", "3.5.9")
    message = r"progress needs Spark 4\.0 or newer in a remote session, and this is 3\.5\.9: .* use a classic session"
    with pytest.raises(RuntimeError, match=message):
        check_reports_progress(SimpleNamespace())
    check_reports_progress(SimpleNamespace(registerProgressHandler=None))
