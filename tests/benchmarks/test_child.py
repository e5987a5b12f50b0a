"""A child process answers over pipes, and all its processes end with it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import benchmarks.children
from benchmarks._child import ChildError, start
from tests.support import wait_until

STAND_IN = """
import os, subprocess, sys, time
sys.path.insert(0, sys.argv[1])
from serving import serve

def checkpoint(mode, capacity, elements):
    print("output of a library")
    return {"mode": mode, "calls": int(elements), "peak": capacity}

def burn(mode, capacity, seconds):
    subprocess.run([sys.executable, "-c", f"import time\\nwhile time.process_time() < {seconds}: pass"], check=True)
    return {}

def fail(mode, capacity):
    raise RuntimeError("out of luck")

def spawn(mode, capacity):
    return {"pid": subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]).pid}

serve({"checkpoint": checkpoint, "burn": burn, "fail": fail, "spawn": spawn})
"""


@pytest.fixture
def command(tmp_path: Path) -> list[str | Path]:
    script = tmp_path / "stand_in.py"
    script.write_text(STAND_IN, encoding="utf-8")
    return [sys.executable, script, benchmarks.children.__path__[0]]


def test_a_child_answers_each_question(command: list[str | Path]) -> None:
    with start(command) as child:
        for elements in (3, 4):
            answer = child.request("checkpoint", "ordered", 100, elements)
            assert answer.content == {"mode": "ordered", "calls": elements, "peak": 100}
            assert answer.wall > 0


def test_the_cpu_time_of_its_processes_counts_where_the_kernel_reports_it(command: list[str | Path]) -> None:
    with start(command) as child:
        answer = child.request("burn", "ordered", 1, 0.3)
    if Path("/proc/self/stat").exists():
        assert answer.cpu is not None
        assert answer.cpu >= 0.25
    else:
        assert answer.cpu is None


def test_a_child_that_has_failed_answers_no_more(command: list[str | Path]) -> None:
    with start(command) as child:
        with pytest.raises(ChildError, match="the process has ended: RuntimeError: out of luck"):
            child.request("fail", "ordered", 1)
        with pytest.raises(ChildError):
            child.request("checkpoint", "ordered", 1, 1)


def test_the_error_of_a_child_that_does_not_start_has_its_reason() -> None:
    with (
        pytest.raises(ChildError, match="the process has ended: not installed"),
        start([sys.executable, "-c", "raise SystemExit('not installed')"]),
    ):
        pass


def test_the_processes_of_a_child_end_with_it(command: list[str | Path]) -> None:
    with start(command) as child:
        pid = child.request("spawn", "ordered", 1).content["pid"]
    wait_until(lambda: not _is_alive(pid))


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not (stat.exists() and stat.read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z")
