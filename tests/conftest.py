"""Hypothesis profiles, and fixtures for the three modes of the operator.

With `--hypothesis-profile=thorough` or `soak` Hypothesis runs more examples of each property.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
from hypothesis import HealthCheck, settings

from tests.cpu import CpuMeter
from trio_asyncio_io import AsyncWaitOperator, keyed_wait, ordered_wait, unordered_wait

# No deadline: the real duration of an example in virtual time depends on the machine
settings.register_profile("quick", deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("thorough", settings.get_profile("quick"), max_examples=200)
settings.register_profile("soak", settings.get_profile("quick"), max_examples=10_000)
settings.load_profile("quick")

CPU = pytest.StashKey[CpuMeter]()

# For each JVM that a test starts: none lives long enough for the optimizing compiler and parallel collectors to pay off
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

# For each Spark: a few rows are not worth generated code, and Python is slow to connect on a busy machine
os.environ.setdefault(
    "PYSPARK_SUBMIT_ARGS",
    "--conf spark.sql.codegen.factoryMode=NO_CODEGEN --conf spark.sql.codegen.wholeStage=false "
    "--conf spark.python.authenticate.socketTimeout=120s pyspark-shell",
)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Run the tests that share a JVM or a server in the same process."""
    from tests.scheduling import GroupScheduling  # noqa: PLC0415 - needs xdist

    return GroupScheduling(config, log)


def pytest_configure(config: pytest.Config) -> None:
    """Measure the CPU time of the run, in the process that reports."""
    if Path("/proc/self/stat").exists() and not hasattr(config, "workerinput"):
        config.stash[CPU] = CpuMeter()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the CPU time of the run."""
    if CPU in config.stash:
        programs = sorted(config.stash[CPU].end().items(), key=lambda each: -each[1])
        named = ", ".join(f"{program} {seconds:.0f}" for program, seconds in programs if seconds >= 1)
        total = sum(seconds for _, seconds in programs)
        terminalreporter.write_line(f"CPU time of all processes: {total:.0f} s{f' ({named})' if named else ''}")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Collect the tests without garbage collections, which took a sixth of the time: hardly anything is garbage."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In a process of xdist, put the longest groups first."""
    if hasattr(config, "workerinput"):
        from tests.scheduling import sort_by_length  # noqa: PLC0415 - needs xdist

        sort_by_length(items)


OPERATORS = {
    "ordered": ordered_wait,
    "unordered": unordered_wait,
    "keyed": partial(keyed_wait, key=repr),
}


@pytest.fixture(params=list(OPERATORS))
def mode(request: pytest.FixtureRequest) -> Any:
    """Each mode."""
    return request.param


@pytest.fixture
def async_wait(mode: str) -> Any:
    """`ordered_wait`, `unordered_wait` or `keyed_wait`. Equal values have the same key."""
    return OPERATORS[mode]


@pytest.fixture
def make_operator(mode: str) -> Any:
    """`AsyncWaitOperator` in the mode. Equal values have the same key."""
    return partial(AsyncWaitOperator, mode=mode, key=repr if mode == "keyed" else None)


@pytest.fixture(scope="session")
def raised_by() -> Callable[..., Awaitable[Any]]:
    """A function that enters an operator, runs a body (by default: receive all outputs) and returns the exception."""

    async def raised_by(operator: Any, body: Callable[[Any], Awaitable[None]] | None = None) -> Any:
        try:
            async with operator as results:
                if body is not None:
                    await body(results)
                else:
                    async for _ in results:
                        pass
        except BaseException as error:  # noqa: BLE001 - the test inspects it
            return error
        return None

    return raised_by


@pytest.fixture(autouse=True, scope="module")
def _older_objects_are_frozen() -> None:
    """Leave what exists before a file out of its garbage collections, of which some tests make hundreds.

    That is not only modules and tests: an exception among the parameters of a test keeps all frames that it passed.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture
def no_cpu_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The operator's thread needs no CPU time: on a busy machine, it would exceed virtual time, and be the verdict."""
    monkeypatch.setattr("trio_asyncio_io._operator.tasks.thread_time", lambda: 0.0)
    monkeypatch.setattr("trio_asyncio_io._operator.tasks.cpu_wait", lambda: 0.0)


@pytest.fixture
def nothing_left() -> Callable[[], AbstractContextManager[None]]:
    """A context manager that checks that its block leaves no task behind."""

    @contextmanager
    def check() -> Iterator[None]:
        before = trio.lowlevel.current_statistics().tasks_living
        yield
        assert trio.lowlevel.current_statistics().tasks_living == before

    return check
