"""Each thread of the main job counts for its kind of process."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from benchmarks import _year
from tests.support import wait_until

ARGUMENTS = {
    "/usr/bin/python3\0-m\0pyspark.daemon\0pyspark.worker\0": _year.SPARKS_THREAD,
    "/usr/bin/java\0-cp\0spark\0": _year.JVM,
    "/usr/bin/python3\0-m\0udfs.demo.service\0": _year.SERVICE,
}


@pytest.mark.parametrize("arguments", ARGUMENTS)
def test_a_process_is_known_by_its_command(arguments: str) -> None:
    process = Path("/proc") / str(os.getpid())
    thread = process / "task" / str(os.getpid())
    assert _year._kind_of(process, thread, arguments, is_root=False) == ARGUMENTS[arguments]
    assert _year._kind_of(process, thread, arguments, is_root=True) == _year.DRIVER


def test_other_threads_of_a_worker_belong_to_the_loop() -> None:
    process = Path("/proc") / str(os.getpid())
    assert _year._kind_of(process, process / "task" / "1", "pyspark.daemon", is_root=False) == _year.LOOP


def test_the_threads_of_a_session_have_cpu_times() -> None:
    found = {thread: seconds for thread, _, seconds in _year._threads(os.getsid(0))}
    own = found[str(os.getpid()), str(os.getpid())]
    assert 0.0 < own <= sum(os.times()[:2]) + 0.1


def test_a_process_in_a_session_of_its_own_counts_until_it_has_ended() -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, start_new_session=True) as process:
        thread = str(process.pid), str(process.pid)
        # Until the kernel has its arguments, a new process looks like a zombie
        wait_until(lambda: thread in {found for found, _, _ in _year._threads(os.getpid())})
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it is a zombie, whose command nobody can read
        assert thread not in {found for found, _, _ in _year._threads(os.getpid())}
