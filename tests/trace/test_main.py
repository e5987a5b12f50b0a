"""The commands, run as `python -m trio_asyncio_io.trace`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.trace.test_merge import trace_of
from trio_asyncio_io._watch.files import write
from trio_asyncio_io.trace import _main as main
from trio_asyncio_io.trace import read


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    """A directory with the traces of two tasks."""
    for number in range(2):
        write(trace_of(f"task {number}", began=100.0 + number), tmp_path / "traces" / f"{number}.json")
    return tmp_path / "traces"


def test_a_trace_is_drawn_beside_it(traces: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([str(traces / "0.json")])
    drawing = traces / "0.svg"
    assert capsys.readouterr().out == f"wrote {drawing}\n"
    assert drawing.read_text(encoding="utf-8").startswith("<svg ")


def test_a_drawing_has_the_title_and_the_rows_asked_for(traces: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.svg"
    main([str(traces / "0.json"), "-o", str(target), "--title", "Weather", "--rows", "1"])
    drawing = target.read_text(encoding="utf-8")
    assert "Weather" in drawing
    assert "1 of 2 records: those that failed or took longest" in drawing


def test_a_directory_is_merged(traces: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "run.json"
    main(["merge", str(traces), "-o", str(target)])
    assert capsys.readouterr().out == f"wrote {target}: 2 traces, 4 records\n"
    assert read(target)["otherData"]["began"] == 100.0


def test_a_merged_file_in_the_same_directory_is_not_merged_into_itself(traces: Path) -> None:
    target = traces / "run.json"
    for _ in range(2):
        main(["merge", str(traces), "-o", str(target)])
    assert read(target)["otherData"]["records"] == 4


def test_an_empty_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"has no trace: there is no file \*\.json in it"):
        main(["merge", str(tmp_path), "-o", str(tmp_path / "run.json")])


def test_a_bad_file_among_many_is_named(traces: Path, tmp_path: Path) -> None:
    (traces / "killed.json").touch()
    with pytest.raises(SystemExit, match=r"^error: .*killed\.json is empty"):
        main(["merge", str(traces), "-o", str(tmp_path / "run.json")])
    assert not (tmp_path / "run.json").exists()


@pytest.mark.parametrize(
    "content", [None, "", "no", json.dumps({"traceEvents": []})], ids=["missing", "empty", "text", "other"]
)
def test_a_bad_file_gives_one_line_with_its_path(content: str | None, tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(SystemExit) as ended:
        main([str(path)])
    line = str(ended.value)
    assert line.startswith("error: ")
    assert "\n" not in line
    assert str(path) in line


@pytest.mark.processes
def test_a_missing_file_gives_one_line_on_stderr_and_a_status(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "trio_asyncio_io.trace", str(tmp_path / "none.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith("error: ")


def test_the_number_of_rows_must_be_positive(traces: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([str(traces / "0.json"), "--rows", "0"])
    assert "argument --rows" in capsys.readouterr().err
