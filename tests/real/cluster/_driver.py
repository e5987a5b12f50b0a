"""Drivers: each submits jobs in a process of its own, on commands that it receives over a socket."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from select import select
from typing import Any

from tests.processes import Family
from tests.real.cluster._standalone import MEMORY, SPARK, Cluster, clean_environment
from tests.support import PATIENCE

ROOT = Path(__file__).parents[3]
PROGRAM = Path(__file__).with_name("_job.py")
CONF = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": MEMORY,
    "spark.executor.memory": MEMORY,
    "spark.executor.cores": "1",
    "spark.cores.max": "2",
    "spark.ui.enabled": "false",
}


def packed(folder: Path) -> Path:
    """Both packages in an archive, made as in the documentation."""
    archive = folder / "packages.zip"
    command = [sys.executable, "-m", "zipfile", "-c", str(archive), "trio_asyncio_io", "udfs"]
    subprocess.run(command, cwd=ROOT, check=True)
    return archive


class Driver(Family):
    """A submitted driver, with all processes that it starts.

    Args:
        master: The cluster's URL.
        archive: The packages to send to the executors.
        folder: Its working directory.
        conf: Settings in addition to the usual ones.
    """

    def __init__(self, master: str, archive: Path, folder: Path, conf: Mapping[str, str]) -> None:
        self.conf = conf
        settings = [f"--conf={name}={value}" for name, value in {**CONF, **conf}.items()]
        submit = [str(SPARK / "bin" / "spark-submit"), "--master", master, "--py-files", str(archive), *settings]
        self._changed = threading.Condition()
        self._report: dict[str, Any] = {}
        self._job = 0
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
            environment = clean_environment(folder) | {"PYSPARK_PYTHON": sys.executable}
            super().__init__([*submit, str(PROGRAM), str(port)], folder, environment, "driver")
            self._socket = self._accepted(listener)
        self._listener = threading.Thread(target=self._listen, name="listener")
        self._listener.start()

    def run(self, **job: Any) -> None:
        """Start a job. See _job.py."""
        with self._changed:
            self._job += 1
            self._report = {}
        self._send(run=job, number=self._job)

    def cancel(self) -> None:
        """Cancel all its jobs."""
        self._send(cancel=True)

    def result(self, name: str) -> Any:
        """This entry of the driver's report on its last job, once there is one."""
        with self._changed:
            self._changed.wait_for(lambda: self._report, PATIENCE)
            assert name in self._report, f"{self._report}\n{self.tail()}"
            return self._report[name]

    def finish(self) -> None:
        """Stop its session, and fail if a process survives."""
        try:
            self._send(stop=True)
            assert self.leader.wait(PATIENCE) == 0, self.tail()
            self.until(lambda: not self.alive())
        finally:
            self.kill()

    def kill(self) -> None:
        """Kill all its processes."""
        super().kill()
        if hasattr(self, "_listener"):
            self._listener.join(PATIENCE)

    def _accepted(self, listener: socket.socket) -> socket.socket:
        """The connection that the program opens when it has a session."""
        listener.setblocking(False)
        try:
            self.until(lambda: self.leader.poll() is not None or bool(select([listener], [], [], 0)[0]))
            assert self.leader.poll() is None, self.tail()
        except BaseException:
            self.kill()
            raise
        connection = listener.accept()[0]
        connection.setblocking(True)
        return connection

    def _send(self, **command: Any) -> None:
        self._socket.sendall(f"{json.dumps(command)}\n".encode())

    def _listen(self) -> None:
        with self._socket, self._socket.makefile() as lines:
            try:
                for line in lines:
                    self._receive(**json.loads(line))
            except ConnectionError:
                pass  # the driver was killed
        self._receive(self._job, gone=True)

    def _receive(self, number: int, **report: Any) -> None:
        with self._changed:
            if number == self._job:  # an earlier job is that of a failed test
                self._report = report
            self._changed.notify_all()


class Applications:
    """One application at a time. Tests with the same settings share it, because it takes long to start.

    Args:
        cluster: Runs the applications.
        archive: The packages to send to the executors.
        folder: The working directory of the drivers.
    """

    def __init__(self, cluster: Cluster, archive: Path, folder: Path) -> None:
        self._cluster = cluster
        self._archive = archive
        self._folder = folder
        self._driver: Driver | None = None

    def get(self, conf: Mapping[str, str]) -> Driver:
        """A driver with these settings."""
        driver = self._driver
        if driver is None or driver.conf != conf or driver.leader.poll() is not None:
            self.finish()
            driver = self._driver = Driver(self._cluster.url, self._archive, self._folder, conf)
        return driver

    def finish(self) -> None:
        """End the application, and fail if one of its processes survives."""
        driver, self._driver = self._driver, None
        if driver is not None and driver.leader.poll() is None:
            driver.finish()
        self._cluster.master.until(lambda: not self._cluster.children())
