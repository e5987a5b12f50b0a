"""A real Spark with two tasks at a time and small Arrow batches, and a service on loopback that counts its calls."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pyspark
import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name

import tests.service
from tests.real import jobs
from tests.support import PATIENCE

HERE = Path(__file__).parent

CONF = {
    **jobs.CONF,
    "spark.python.daemon.module": "preloading_daemon",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",  # the jobs have a few rows, and would pay for new plans
    "spark.sql.execution.arrow.maxRecordsPerBatch": "7",
    "spark.sql.session.timeZone": "America/New_York",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs Java. A hang ends the run: a thread that waits for the JVM cannot be interrupted."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker("spark")
            item.add_marker(pytest.mark.timeout(3 * PATIENCE, method="thread"))
            if pyspark.__version__.startswith(("3.5.", "4.0.", "4.1.")):  # their sockets close when they are collected
                item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call() -> Generator[None, Any, Any]:
    """Expect the error of a Spark without state for Python: 3.5, and 4.0 in a remote session."""
    try:
        return (yield)
    except RuntimeError as error:
        is_expected = re.match(r"carry_over needs Spark 4\.[01] or newer", str(error))
        if hasattr(F, "arrow_udf") or not is_expected:
            raise
        pytest.xfail(str(error))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One session for all tests: starting another takes seconds."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PYSPARK_PYTHON", sys.executable)
        environment.setenv("PYTHONPATH", str(HERE / "workers"), prepend=os.pathsep)
        environment.delenv("SPARK_HOME", raising=False)
        # Without bytecode, each worker compiles PySpark again: seconds per task
        environment.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
        builder = SparkSession.builder.config(map=CONF)
        builder.config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")  # jobs fail here by design
    yield session
    session.stop()


@pytest.fixture
def new_session(spark: SparkSession) -> Iterator[Callable[[], SparkSession]]:
    """Makes sessions in the JVM of all tests. The usual one is active again after the test, even if that fails."""
    yield spark.newSession
    spark.createDataFrame([(0,)], "id long")


@pytest.fixture(autouse=True, scope="module")
def _sent_by_value(request: pytest.FixtureRequest) -> Iterator[None]:
    """Send functions as bytecode, as from a notebook: the workers cannot import the tests."""
    modules: list[ModuleType] = [request.module, tests.service]
    for module in modules:
        cloudpickle.register_pickle_by_value(module)
    yield
    for module in modules:
        cloudpickle.unregister_pickle_by_value(module)
