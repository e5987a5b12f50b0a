"""Flushing PySpark's output buffer."""

from __future__ import annotations

import os
import socket
from importlib.machinery import ModuleSpec
from typing import Any

import pytest

from udfs._spark_thread.output_buffer import OutputBuffer
from udfs._trio_thread.hangup import HangUpError

WORKER = "def worker(outfile, make):\n    return make()\n"
ROWS = b"the first rows"


def buffer_around(outfile: object) -> OutputBuffer:
    """The output buffer of a task that PySpark's daemon runs with this `outfile`."""
    module: dict[str, Any] = {"__name__": "__main__", "__spec__": ModuleSpec("pyspark.daemon", None)}
    exec(WORKER, module)
    made: OutputBuffer = module["worker"](outfile, OutputBuffer)
    return made


def test_a_flush_sends_the_output_to_spark() -> None:
    ours, sparks = socket.socketpair()
    with ours, sparks, os.fdopen(os.dup(ours.fileno()), "wb", 65536) as outfile:
        sparks.setblocking(False)
        outfile.write(ROWS)
        with pytest.raises(BlockingIOError):
            sparks.recv(len(ROWS))
        buffer_around(outfile).flush()
        assert sparks.recv(len(ROWS)) == ROWS


def test_a_flush_to_a_closed_connection_is_a_hang_up() -> None:
    ours, sparks = socket.socketpair()
    with ours:
        outfile = os.fdopen(os.dup(ours.fileno()), "wb", 65536)
        outfile.write(ROWS)
        sparks.close()
        with pytest.raises(HangUpError, match="closed the connection"):
            buffer_around(outfile).flush()
        with pytest.raises(BrokenPipeError):
            outfile.close()


@pytest.mark.parametrize("outfile", [None, "a file"])
def test_a_flush_without_a_buffer_has_no_effect(outfile: object) -> None:
    buffer_around(outfile).flush()
    OutputBuffer().flush()
