"""Traces of Spark tasks: one file for each, and one of all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.trace.trace_format import check_format
from trio_asyncio_io.trace import TraceRecorder, merge, read
from udfs import unordered_wait

pytestmark = pytest.mark.spark


async def double(id: int) -> int:  # noqa: A002 - the column's name
    return 2 * id


def test_the_traces_of_all_tasks_are_merged_into_one(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    recorder = TraceRecorder("traces", max_records=10)
    unordered_wait(spark.range(300, numPartitions=3), double, "twice long", timeout=60.0, observer=recorder).collect()
    merged = merge(map(read, (tmp_path / "traces").iterdir()))
    check_format(merged)
    names = [event["args"]["name"] for event in merged["traceEvents"] if event["name"] == "process_name"]
    assert sorted(name.split(", ")[2] for name in names) == ["partition 0", "partition 1", "partition 2"]
    assert (merged["otherData"]["records"], merged["otherData"]["records_left_out"]) == (21, 279)
