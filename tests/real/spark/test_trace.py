"""Traces of Spark tasks: one file for each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.trace.trace_format import check_format
from trio_asyncio_io.trace import TraceRecorder
from udfs import unordered_wait

pytestmark = pytest.mark.spark


async def double(id: int) -> int:  # noqa: A002 - the column's name
    return 2 * id


def test_each_task_writes_its_trace(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    recorder = TraceRecorder("traces", max_records=10)
    unordered_wait(spark.range(300, numPartitions=3), double, "twice long", timeout=60.0, observer=recorder).collect()
    traces = [json.loads(path.read_bytes()) for path in (tmp_path / "traces").iterdir()]
    for trace in traces:
        check_format(trace)
        assert (trace["otherData"]["records"], trace["otherData"]["records_left_out"]) == (7, 93)
    names = [trace["traceEvents"][0]["args"]["name"] for trace in traces]
    assert sorted(name.split(", ")[2] for name in names) == ["partition 0", "partition 1", "partition 2"]
