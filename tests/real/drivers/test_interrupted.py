"""Ctrl-C in the driver of a job whose calls hang."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.processes import Family
from tests.real.drivers.interrupted_driver import CALLS
from tests.real.jobs import start
from tests.service import Service
from tests.support import PATIENCE

pytestmark = [pytest.mark.spark, pytest.mark.processes, pytest.mark.timeout(4 * PATIENCE, method="thread")]

DRIVER = Path(__file__).with_name("interrupted_driver.py")


def interrupted(service: Service, folder: Path, kind: str) -> Family:
    """The driver, which was interrupted while all slots called."""
    service.hold()
    job = start(DRIVER, folder, service.client.port, kind)
    try:
        job.until(lambda: service.running == CALLS)
        os.kill(job.leader.pid, signal.SIGINT)
    except BaseException:
        job.kill()
        raise
    return job


def test_ctrl_c_in_a_script_ends_its_calls_and_leaves_no_process(service: Service, tmp_path: Path) -> None:
    job = interrupted(service, tmp_path, "script")
    try:
        job.until(lambda: service.running == 0 and not job.alive())
        assert job.leader.wait(PATIENCE) == -signal.SIGINT
        assert len(service.calls) == CALLS
    finally:
        job.kill()


@pytest.mark.thorough
def test_cancel_all_jobs_after_ctrl_c_in_a_shell_ends_the_calls(service: Service, tmp_path: Path) -> None:
    """Ctrl-C alone does not: PySpark cannot call into the JVM while the main thread waits for an action."""
    job = interrupted(service, tmp_path, "shell")
    try:
        job.until(lambda: service.running == 0)
        assert job.leader.wait(2 * PATIENCE) == 0, job.tail()
        assert len(service.calls) == CALLS
    finally:
        job.kill()
