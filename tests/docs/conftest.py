"""Fixtures of the examples: the installed wheel, and the service that a user would start."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.real.databases.conftest import postgres as postgres  # noqa: PLC0414 - for the example with asyncpg
from tests.support import PATIENCE
from tests.wheel import ROOT, environment_of_a_user, install

LLM_SERVICE = ROOT / "docs" / "examples" / "services" / "llm_service.py"


@pytest.fixture(scope="session")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment in which the wheel is installed."""
    return install(tmp_path_factory.mktemp("installed"))


@pytest.fixture(scope="session")
def service(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of `python -m udfs.demo.service`, which the examples use."""
    with running_service(python, "-m", "udfs.demo.service", folder=tmp_path_factory.mktemp("service")) as url:
        yield url


@pytest.fixture
def llm(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of the stand-in for LLM services, which has no rows yet."""
    with running_service(python, str(LLM_SERVICE), folder=tmp_path_factory.mktemp("llm")) as url:
        yield url


@contextmanager
def running_service(python: Path, *command: str, folder: Path) -> Iterator[str]:
    """The URL of a service on its port, while the block runs."""
    with subprocess.Popen(
        [python, *command],
        cwd=folder,
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
