"""The driver: a job that is submitted from a process of its own, and is told over a socket what to do."""

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

from tests.real.cluster._processes import Family
from tests.real.cluster._standalone import MEMORY, SPARK, Cluster, clean_environment
from tests.support import PATIENCE

ROOT = Path(__file__).parents[3]
PROGRAM = Path(__file__).with_name("_job.py")
LIGHT = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
CONF = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": MEMORY,
    "spark.driver.extraJavaOptions": LIGHT,
    "spark.executor.memory": MEMORY,
    "spark.executor.extraJavaOptions": LIGHT,
    "spark.executor.cores": "1",
    "spark.cores.max": "2",
    "spark.ui.enabled": "false",
}


def packed(folder: Path) -> Path:
    """Our two packages as an archive, made as the documentation says."""
    archive = folder / "packages.zip"
    command = [sys.executable, "-m", "zipfile", "-c", str(archive), "trio_asyncio_io", "udfs"]
    subprocess.run(command, cwd=ROOT, check=True)
    return archive


class Driver(Family):
    """A driver that was submitted, and all processes that this has started.

    Args:
        master: The cluster's URL.
        archive: What is shipped.
        folder: Where it runs.
        conf: Settings beyond the usual.
    """

    def __init__(self, master: str, archive: Path, folder: Path, conf: Mapping[str, str]) -> None:
        self.conf = conf
        settings = [f"--conf={name}={value}" for name, value in {**CONF, **conf}.items()]
        submit = [str(SPARK / "bin" / "spark-submit"), "--master", master, "--py-files", str(archive), *settings]
        self._changed = threading.Condition()
        self._said: dict[str, Any] = {}
        self._job = 0
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
            super().__init__([*submit, str(PROGRAM), str(port)], folder, clean_environment(folder), "driver")
            self._socket = self._accepted(listener)
        self._listener = threading.Thread(target=self._listen, name="listener")
        self._listener.start()

    def run(self, **job: Any) -> None:
        """Have it run a job; see _job.py."""
        with self._changed:
            self._job += 1
            self._said = {}
        self._tell(run=job, number=self._job)

    def cancel(self) -> None:
        """Have it cancel all its jobs."""
        self._tell(cancel=True)

    def hear(self, what: str) -> Any:
        """What the driver says of the job that it was given last, once it has said it."""
        with self._changed:
            self._changed.wait_for(lambda: self._said, PATIENCE)
            assert what in self._said, f"{self._said}\n{self.tail()}"
            return self._said[what]

    def finish(self) -> None:
        """Have it stop its session, and see that nothing of it stays."""
        try:
            self._tell(stop=True)
            assert self.leader.wait(PATIENCE) == 0, self.tail()
            self.until(lambda: not self.alive())
        finally:
            self.kill()

    def kill(self) -> None:
        """Kill all of it."""
        super().kill()
        if hasattr(self, "_listener"):
            self._listener.join(PATIENCE)

    def _accepted(self, listener: socket.socket) -> socket.socket:
        """The connection of the program, which it makes when it has a session."""
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

    def _tell(self, **what: Any) -> None:
        self._socket.sendall(f"{json.dumps(what)}\n".encode())

    def _listen(self) -> None:
        with self._socket, self._socket.makefile() as lines:
            try:
                for line in lines:
                    self._hear(**json.loads(line))
            except ConnectionError:
                pass  # it was killed
        self._hear(self._job, gone=True)

    def _hear(self, number: int, **what: Any) -> None:
        with self._changed:
            if number == self._job:  # an earlier one is that of a test that has failed
                self._said = what
            self._changed.notify_all()


class Applications:
    """One application at a time, for as long as the tests want the same one: it takes long to start.

    Args:
        cluster: Where they run.
        archive: What is shipped with them.
        folder: Where the drivers run.
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
        """End the application, and find nothing that it left behind."""
        driver, self._driver = self._driver, None
        if driver is not None and driver.leader.poll() is None:
            driver.finish()
        self._cluster.master.until(lambda: not self._cluster.children())
