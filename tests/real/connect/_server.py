"""A Spark Connect server on loopback, in a process that ends with the one that started it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from tests.real import jobs
from tests.support import PATIENCE
from tests.wheel import ROOT, environment_of_a_user

CONF = {
    **jobs.CONF,
    "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.connect.grpc.binding.port": "0",
    "spark.sql.artifact.isolation.enabled": "true",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "7",
    "spark.sql.session.timeZone": "America/New_York",
}


@contextmanager
def running(folder: Path) -> Iterator[str]:
    """Start a server that writes its files to this folder, and yield its URL. Its workers can import the sources."""
    environment = environment_of_a_user(PYSPARK_PYTHON=sys.executable, PYTHONPATH=str(ROOT))
    command = [sys.executable, __file__]
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            url = server.stdout.readline().strip()
            assert url, "the server did not start: see its standard error"
            yield url
        finally:
            server.stdin.close()
            try:
                server.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                server.kill()
                raise


def main() -> None:
    """Serve until standard input ends, which it also does when the parent process is killed."""
    session = SparkSession.builder.config(map=CONF).getOrCreate()
    session.sparkContext.setLogLevel("OFF")  # jobs fail here by design
    service = getattr(session._jvm, "org.apache.spark.sql.connect.service.SparkConnectService$")
    sys.stdout.write(f"sc://127.0.0.1:{getattr(service, 'MODULE$').localPort()}\n")
    sys.stdout.flush()
    sys.stdin.read()
    session.stop()


if __name__ == "__main__":
    main()
