"""Fixtures of the examples: the installed wheel, and the service that a user would start."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.databases.conftest import postgres as postgres  # noqa: PLC0414 - for the example with asyncpg
from tests.support import PATIENCE
from tests.wheel import environment_of_a_user, install


@pytest.fixture(scope="session")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment in which the wheel is installed."""
    return install(tmp_path_factory.mktemp("installed"))


@pytest.fixture(scope="session")
def service(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of `python -m udfs.demo.service`, which the examples use."""
    with subprocess.Popen(
        [python, "-m", "udfs.demo.service"],
        cwd=tmp_path_factory.mktemp("service"),
        env=environment_of_a_user(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        line = process.stdout.readline()
        if not line:  # for example, the port is in use
            pytest.fail(process.stderr.read())
        yield line.removeprefix("listening on ").strip()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE)
        assert (process.returncode, errors) == (0, "")
