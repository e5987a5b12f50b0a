"""The cluster: a master and two workers, each a process of its own, from the PySpark that is installed."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import pyspark

from tests.real.cluster._processes import Family, Process

SPARK = Path(pyspark.__file__).parent
HOSTS = ["127.0.0.1", "localhost"]  # the same, but not for Spark: it speculates only on another host
MEMORY = "512m"


def clean_environment(folder: Path) -> dict[str, str]:
    """An environment for Spark's processes, from which nobody can import the source tree."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_", "PYTHON"))}
    return {
        **kept,
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(SPARK),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(folder),
        "SPARK_NO_DAEMONIZE": "1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dspark.master.rest.enabled=false",
    }


class Node(Family):
    """A master or a worker: a JVM, and what it starts.

    Attributes:
        work: A worker's folder: its executors work in `<application>/<number>` there.
    """

    def __init__(self, kind: str, arguments: list[str], folder: Path, name: str) -> None:
        self.work = folder / name
        command = [str(SPARK / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}", *arguments]
        super().__init__(command, folder, clean_environment(folder), name)

    def says(self, pattern: str) -> str:
        """What the log has in the pattern's group, once it is there."""
        self.until(lambda: self.leader.poll() is not None or self._found(pattern) is not None)
        found = self._found(pattern)
        assert found is not None, self.tail()
        return found[1]

    def _found(self, pattern: str) -> re.Match[str] | None:
        return re.search(pattern, self.log.read_text(errors="replace"))

    def children(self) -> list[Process]:
        """All but the master or the worker itself."""
        return [process for process in self.alive() if process.pid != self.leader.pid]

    def executor(self) -> int:
        """The process of the one executor, a JVM."""
        found = [process.pid for process in self.children() if "CoarseGrainedExecutorBackend" in process.command]
        assert len(found) == 1, self.children()
        return found[0]


class Cluster:
    """A master, and a worker with one core on each of two hosts, which are loopback both.

    Args:
        folder: Where all of them keep their files.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._started = 0
        self.workers: dict[str, Node] = {}
        arguments = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        self.master = Node("master.Master", arguments, folder, "master")
        try:
            self.url = self.master.says(r"Starting Spark master at (spark://\S+)")
            self.complete()
        except BaseException:
            self.stop()
            raise

    def complete(self) -> None:
        """Start a worker for each host that has none."""
        missing = [host for host in HOSTS if host not in self.workers or self.workers[host].leader.poll() is not None]
        for host in missing:
            self.workers[host] = self._worker(host)
        for host in missing:
            self.workers[host].says(r"(Successfully registered with master)")

    def _worker(self, host: str) -> Node:
        self._started += 1
        name = f"worker-{self._started}"
        arguments = ["--host", host, "--port", "0", "--webui-port", "0", "--cores", "1", "--memory", MEMORY]
        arguments += ["--work-dir", str(self.folder / name), self.url]
        return Node("worker.Worker", arguments, self.folder, name)

    def children(self) -> Mapping[str, list[Process]]:
        """What the workers have started and is still there, for those who have anything."""
        found = {worker.name: worker.children() for worker in self.workers.values()}
        return {name: children for name, children in found.items() if children}

    def stop(self) -> None:
        """End all of it; an error if any descendant stays."""
        with ExitStack() as stack:  # an error of one does not keep the others
            for node in [self.master, *self.workers.values()]:
                stack.callback(node.end)
