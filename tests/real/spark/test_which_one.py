"""The scripts of docs/tutorial/interactive/which-one.html for Spark."""

from __future__ import annotations

import re
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.docs.which_one import SCRIPTS, scripts
from tests.support import thorough_except

SHORT = ["rows unordered async keep yes", "rows keyed blocking skip no", "column unordered asyncio stop yes"]


@pytest.fixture(autouse=True)
def _a_session(spark: SparkSession) -> None:
    """The session that a script gets."""


@pytest.mark.variation
@pytest.mark.parametrize("name", thorough_except(SHORT, scripts("rows") + scripts("column")))
def test_a_script_for_spark_shows_all_results(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    namespace: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(SCRIPTS[name].replace("sleep(0.1)", "sleep(0)"), name, "exec"), namespace)
    rows = re.findall(r"^\|\s*(\d+)\|\s*\{?(\d+)(?:, NULL\})?\|", capsys.readouterr().out, re.MULTILINE)
    found = [(int(value), int(result)) for value, result in rows]
    expected = [(number, number) for number in range(10)]
    assert (found if "rows ordered" in name else sorted(found)) == expected
