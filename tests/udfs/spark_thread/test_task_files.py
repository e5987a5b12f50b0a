"""The trace and the report of a task: a file in the directory of the recorder or the report."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from trio_asyncio_io.report import report
from trio_asyncio_io.trace import TraceRecorder
from udfs._plan.arguments import make_settings


async def double(value: int) -> int:
    return 2 * value


def test_each_task_writes_a_file(settings: Any, run_task: Any, tmp_path: Path) -> None:
    made = settings(double, observer=TraceRecorder(tmp_path / "traces", values=True))
    for _ in range(2):
        assert run_task(made, [1, 2], [3]) == [2, 4, 6]
    traces = [json.loads(path.read_bytes())["traceEvents"] for path in (tmp_path / "traces").iterdir()]
    assert [trace[0]["args"]["name"] for trace in traces] == ["double", "double"]
    for trace in traces:
        spans = [event["name"] for event in trace if event.get("cat") == "record"]
        assert sorted(spans) == ["(1,)", "(2,)", "(3,)"]


def test_a_failed_task_writes_its_file(settings: Any, run_task: Any, tmp_path: Path) -> None:
    async def fail(value: int) -> int:
        raise OSError("down")

    with pytest.raises(OSError, match="down"):
        run_task(settings(fail, observer=TraceRecorder(tmp_path)), [1])
    [path] = tmp_path.iterdir()
    events = json.loads(path.read_bytes())["traceEvents"]
    assert [event["args"]["outcome"] for event in events if event.get("cat") == "record"] == ["failed"]


def test_a_task_does_not_fail_because_of_its_trace(
    settings: Any, run_task: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "traces").touch()
    with caplog.at_level(logging.WARNING, "udfs"):
        assert run_task(settings(double, observer=TraceRecorder(tmp_path / "traces")), [1]) == [2]
    assert "a file of this task was not written" in caplog.text


def test_the_report_of_a_query_is_made_of_those_of_its_tasks(settings: Any, run_task: Any, tmp_path: Path) -> None:
    with report(tmp_path / "run.html", title="doubled") as observer:
        made = settings(double, observer=observer)
        for _ in range(2):
            assert run_task(made, [1, 2], [3]) == [2, 4, 6]
    page = (tmp_path / "run.html").read_text("utf-8")
    assert "<h1>doubled</h1>" in page
    assert " in 2 tasks" in page
    assert '<b>6</b><span class="soft">outputs</span>' in page
    assert [path.name for path in tmp_path.iterdir()] == ["run.html"]


@pytest.mark.parametrize("values", [False, True])
def test_the_report_describes_the_inputs_of_a_row_if_it_may(
    settings: Any, run_task: Any, tmp_path: Path, *, values: bool
) -> None:
    async def fail(value: str) -> int:
        raise OSError(f"no route to {value}")

    with report(tmp_path / "run.html", values=values) as observer:
        assert run_task(settings(fail, observer=observer, on_error="null"), ["4711 secret"]) == [None]
    page = (tmp_path / "run.html").read_text("utf-8")
    assert ("4711 secret" in page) == values
    assert ("(&#x27;4711 secret&#x27;,)" in page) == values
    assert ("no route to …" in page) != values


def test_a_recorder_without_a_directory_is_refused_on_the_driver() -> None:
    with pytest.raises(ValueError, match=r'needs a directory for the files of the tasks: TraceRecorder\("traces"\)'):
        make_settings(double, 5.0, {"observer": TraceRecorder()})
