"""Trace files: what is not a trace is refused with one sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trio_asyncio_io._watch.files import write
from trio_asyncio_io.trace import TraceError, TraceRecorder, read

ABOUT = {"writer": "trio_asyncio_io", "format": 1}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        pytest.param("", "is empty: the run that should have written it may have been killed", id="empty"),
        pytest.param(" \n", "is empty", id="blank"),
        pytest.param("{", "is not JSON: Expecting property name", id="not JSON"),
        pytest.param("PAR1\udcff", "is not JSON: ", id="not text"),
        pytest.param("[" * 100_000, "is not JSON: it is too deeply nested", id="deeply nested"),
        pytest.param("[]", "is not a trace of a TraceRecorder: there is no list of traceEvents", id="a list"),
        pytest.param('{"traceEvents": 3}', "there is no list of traceEvents", id="no events"),
        pytest.param('{"traceEvents": []}', "another program has written it", id="of another program"),
        pytest.param(
            json.dumps({"traceEvents": [], "otherData": {**ABOUT, "format": 2}}),
            "its format is 2, and this release reads format 1",
            id="of a later release",
        ),
    ],
)
def test_a_file_that_is_not_a_trace_is_refused_with_one_line(content: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(TraceError, match=problem) as caught:
        read(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_a_trace_without_elements_is_written_and_read(tmp_path: Path) -> None:
    trace = TraceRecorder(name="größer").trace()
    write(trace, tmp_path / "run.json")
    assert read(tmp_path / "run.json") == trace


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text("old")
    with pytest.raises(TypeError):
        write({"traceEvents": [object()]}, path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
