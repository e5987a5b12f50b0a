"""A cluster of a master and two workers, each a process, from the installed PySpark."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import pyspark

from tests.processes import Family, Process

SPARK = Path(pyspark.__file__).parent
HOSTS = ["127.0.0.1", "localhost"]  # the same host, but not to Spark, which speculates only on another one
MEMORY = "512m"


def clean_environment(folder: Path) -> dict[str, str]:
    """An environment for Spark's processes in which the source tree cannot be imported.

    It has no PYSPARK_PYTHON: the one of the driver decides which Python the workers run.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_", "PYTHON"))}
    return {
        **kept,
        "SPARK_HOME": str(SPARK),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(folder),
        "SPARK_NO_DAEMONIZE": "1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": "-Dspark.master.rest.enabled=false",
    }


class Node(Family):
    """A master or a worker: a JVM and the processes that it starts.

    Attributes:
        work: A worker's folder: its executors work in `<application>/<number>` there.
    """

    def __init__(self, kind: str, arguments: list[str], folder: Path, name: str) -> None:
        self.work = folder / name
        command = [str(SPARK / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}", *arguments]
        super().__init__(command, folder, clean_environment(folder), name)

    def logged(self, pattern: str) -> str:
        """The group of this pattern in the log, once the pattern occurs there."""
        self.until(lambda: self.leader.poll() is not None or self._found(pattern) is not None)
        found = self._found(pattern)
        assert found is not None, self.tail()
        return found[1]

    def _found(self, pattern: str) -> re.Match[str] | None:
        return re.search(pattern, self.log.read_text(errors="replace"))

    def children(self) -> list[Process]:
        """All processes but the master or the worker itself."""
        return [process for process in self.alive() if process.pid != self.leader.pid]

    def executor(self) -> int:
        """The process of the one executor, a JVM."""
        found = [process.pid for process in self.children() if "CoarseGrainedExecutorBackend" in process.command]
        assert len(found) == 1, self.children()
        return found[0]


class Cluster:
    """A master, and a worker with one core on each of two hosts. Both hosts are loopback.

    Args:
        folder: For the files of all processes.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._started = 0
        self.workers: dict[str, Node] = {}
        arguments = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        self.master = Node("master.Master", arguments, folder, "master")
        try:
            self.url = self.master.logged(r"Starting Spark master at (spark://\S+)")
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
            self.workers[host].logged(r"(Successfully registered with master)")

    def _worker(self, host: str) -> Node:
        self._started += 1
        name = f"worker-{self._started}"
        arguments = ["--host", host, "--port", "0", "--webui-port", "0", "--cores", "1", "--memory", MEMORY]
        arguments += ["--work-dir", str(self.folder / name), self.url]
        return Node("worker.Worker", arguments, self.folder, name)

    def children(self) -> Mapping[str, list[Process]]:
        """The live processes that each worker has started, without the workers that have none."""
        found = {worker.name: worker.children() for worker in self.workers.values()}
        return {name: children for name, children in found.items() if children}

    def stop(self) -> None:
        """End all processes, and fail if a descendant survives."""
        with ExitStack() as stack:  # an error of one node does not keep the others alive
            for node in [self.master, *self.workers.values()]:
                stack.callback(node.end)
