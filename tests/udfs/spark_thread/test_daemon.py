"""Local variables of PySpark's daemon."""

from __future__ import annotations

import io
import socket
from importlib.machinery import ModuleSpec
from typing import Any

import pytest

from udfs._spark_thread.daemon import local_of_daemon, worker_socket

WORKER = "def worker(sock, look):\n    return look()\n"


def called_by_module(name: str, spec: str | None, local: Any, look: Any) -> Any:
    """The result of `look` when it is called by a function of this module with a local variable `sock`."""
    module: dict[str, Any] = {"__name__": name, "__spec__": spec and ModuleSpec(spec, None)}
    exec(WORKER, module)
    return module["worker"](local, look)


@pytest.mark.parametrize("name", ["__main__", "pyspark.daemon"])
def test_the_socket_is_found_in_pysparks_daemon(name: str) -> None:
    """The daemon is started as `python -m pyspark.daemon`, or called by a daemon module of the user."""
    with socket.socket() as sock:
        assert called_by_module(name, "pyspark.daemon", sock, worker_socket) is sock


@pytest.mark.parametrize(
    ("name", "spec"), [("__main__", None), ("__main__", "their.job"), ("their.daemon", "their.daemon")]
)
def test_variables_of_other_modules_are_ignored(name: str, spec: str | None) -> None:
    with socket.socket() as sock:
        assert called_by_module(name, spec, sock, worker_socket) is None


def test_a_variable_of_another_type_is_ignored() -> None:
    assert called_by_module("__main__", "pyspark.daemon", "a socket", worker_socket) is None


def test_nothing_is_found_outside_a_worker() -> None:
    assert local_of_daemon("outfile", io.BufferedWriter) is None
