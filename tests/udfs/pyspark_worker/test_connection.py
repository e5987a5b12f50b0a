"""The connection between Spark and a worker, which is found in the variables of PySpark's daemon."""

from __future__ import annotations

import logging
import os
from importlib.machinery import ModuleSpec
from typing import Any

import pytest

import udfs._pyspark_worker
from udfs._pyspark_worker import HangUpError, WorkerConnection
from udfs._spark_task import SparkTask

WORKER = "def worker(sock, outfile, look):\n    return look()\n"
ROWS = b"the first rows"


def in_daemon(
    sock: object = None, outfile: object = None, *, name: str = "__main__", spec: str | None = "pyspark.daemon"
) -> WorkerConnection:
    """The connection that a task finds below a function of this module with these local variables."""
    module: dict[str, Any] = {"__name__": name, "__spec__": spec and ModuleSpec(spec, None)}
    exec(WORKER, module)
    found: WorkerConnection = module["worker"](sock, outfile, WorkerConnection.of_task)
    return found


@pytest.mark.parametrize("name", ["__main__", "pyspark.daemon"])
def test_the_socket_is_found_in_pysparks_daemon(name: str, pair: Any) -> None:
    """The daemon is started as `python -m pyspark.daemon`, or called by a daemon module of the user."""
    assert in_daemon(pair[0], name=name).socket is pair[0]


@pytest.mark.parametrize(
    ("name", "spec"), [("__main__", None), ("__main__", "their.job"), ("their.daemon", "their.daemon")]
)
def test_variables_of_other_modules_are_ignored(name: str, spec: str | None, pair: Any) -> None:
    assert in_daemon(pair[0], name=name, spec=spec).socket is None


def test_a_variable_of_another_type_is_ignored() -> None:
    assert in_daemon("a socket", "a file") == WorkerConnection(None, None)


def test_a_flush_sends_the_output_to_spark(pair: Any) -> None:
    ours, sparks = pair
    with os.fdopen(os.dup(ours.fileno()), "wb", 65536) as outfile:
        sparks.setblocking(False)
        outfile.write(ROWS)
        with pytest.raises(BlockingIOError):
            sparks.recv(len(ROWS))
        in_daemon(outfile=outfile).flush()
        assert sparks.recv(len(ROWS)) == ROWS


def test_a_flush_to_a_closed_connection_is_a_hang_up(pair: Any) -> None:
    ours, sparks = pair
    outfile = os.fdopen(os.dup(ours.fileno()), "wb", 65536)
    outfile.write(ROWS)
    sparks.close()
    with pytest.raises(HangUpError, match="closed the connection"):
        in_daemon(outfile=outfile).flush()
    with pytest.raises(BrokenPipeError):
        outfile.close()


def test_outside_a_worker_nothing_is_found_and_nothing_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    WorkerConnection.of_task().flush()
    assert caplog.messages == []


def test_a_worker_that_differs_is_reported_once_with_what_is_lost(
    pair: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(SparkTask, "current", object)
    monkeypatch.setattr(udfs._pyspark_worker, "_reported", set())
    with caplog.at_level(logging.WARNING, "udfs"):
        in_daemon(pair[0]).flush()
        in_daemon(pair[0]).flush()
        in_daemon()
    first, second = caplog.messages
    assert "rows reach Spark only when its buffer is full or the task ends" in first
    assert "the calls of a cancelled task continue" not in first
    assert "the calls of a cancelled task continue until Spark kills this worker" in second
