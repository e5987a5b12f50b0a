"""The main job: wall time of the demo's year, and the CPU time of its processes and threads."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from ._report import Line, Section

FLIGHTS, FLIGHTS_OF_JANUARY = 336_776, 27_004
SECONDS = 0.2  # between two looks at the processes
TICKS = os.sysconf("SC_CLK_TCK")

LOOP = "Python workers: operator, function and HTTP"
SPARKS_THREAD = "Python workers: conversion of rows"
EXECUTOR = "JVM: tasks"
COMPILER, JVM = "JVM: compiler", "JVM: all else"
SERVICE, DRIVER = "the service", "the driver"
KINDS = (LOOP, SPARKS_THREAD, EXECUTOR, COMPILER, JVM, SERVICE, DRIVER)


def year(*, quick: bool, on_step: Callable[[], object]) -> list[Section]:
    """Run the command of README, and read the CPU time of its threads while it runs. Linux only."""
    flights, options = (FLIGHTS_OF_JANUARY, []) if quick else (FLIGHTS, ["--full"])
    seconds, counts = _run([sys.executable, "-m", "udfs.demo", *options])
    on_step()
    section = Section(
        f"The main job: {flights:,} flights, {flights / seconds:,.0f} a second by the wall time of the command",
        f"`{' '.join(['python -m udfs.demo', *options])}`, one run: {seconds:.1f} s on {os.cpu_count()} cores, with "
        "the start of Spark and the comparison of each flight with the source data. CPU time of all threads, read "
        f"every {SECONDS} s",
        {"CPU seconds": "{:.1f}", "μs/flight": "{:.0f}"},
        name="year",
    )
    for kind in KINDS:
        section.lines.append(Line(kind, {"CPU seconds": counts[kind], "μs/flight": counts[kind] / flights * 1e6}))
    return [section]


def _run(command: list[str]) -> tuple[float, dict[str, float]]:
    """Wall seconds, and CPU seconds by kind."""
    used: dict[tuple[str, str], float] = {}
    kinds: dict[tuple[str, str], str] = {}
    began = time.monotonic()
    with (
        TemporaryDirectory() as folder,
        subprocess.Popen(command, cwd=folder, start_new_session=True, stdout=subprocess.DEVNULL) as process,
    ):
        while process.poll() is None:
            for thread, kind, seconds in _threads(process.pid):
                kinds[thread], used[thread] = kind, seconds
            time.sleep(SECONDS)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with status {process.returncode}")
    counts = dict.fromkeys(KINDS, 0.0)
    for thread, seconds in used.items():
        counts[kinds[thread]] += seconds
    return time.monotonic() - began, counts


def _threads(root: int) -> Iterator[tuple[tuple[str, str], str, float]]:
    """The threads of a command's processes, each as (process, thread), its kind, and its CPU seconds.

    All processes are in the session of the command, except the service, which has its own.
    """
    for process in Path("/proc").glob("[0-9]*"):
        try:
            _, parent, _, session, *_ = fields(process)
            if root not in {int(parent), int(session)}:
                continue
            arguments = (process / "cmdline").read_bytes().decode(errors="replace")
            if not arguments:  # a zombie: what it has used was read before
                continue
            for thread in (process / "task").iterdir():
                kind = _kind_of(process, thread, arguments, is_root=int(process.name) == root)
                yield (process.name, thread.name), kind, sum(map(int, fields(thread)[11:13])) / TICKS
        except (OSError, IndexError):  # it has ended
            continue


def fields(folder: Path) -> list[str]:
    """The fields of a file `stat` after the name, which may contain blanks."""
    return (folder / "stat").read_text().rpartition(")")[2].split()


def _kind_of(process: Path, thread: Path, arguments: str, *, is_root: bool) -> str:
    if is_root:
        return DRIVER
    if "pyspark.daemon" in arguments:
        return SPARKS_THREAD if thread.name == process.name else LOOP
    if "udfs.demo" in arguments:
        return SERVICE
    name = (thread / "comm").read_text()
    return COMPILER if "Compiler" in name else EXECUTOR if "Executor" in name else JVM
