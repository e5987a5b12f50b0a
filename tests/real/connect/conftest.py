"""A remote session, to a Spark Connect server in another process, and the service that the tests of Spark ask."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession

import tests.real.spark.conftest as tests_of_spark
from tests.real.connect._server import running
from tests.support import PATIENCE

HERE = Path(__file__).parent

pytest_pyfunc_call = tests_of_spark.pytest_pyfunc_call


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs Java. A hang ends the run: one cannot take a thread back that waits for the server."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker("spark")
            item.add_marker(pytest.mark.timeout(3 * PATIENCE, method="thread"))


@pytest.fixture(scope="package")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the one server of these tests listens."""
    with running(tmp_path_factory.mktemp("server")) as url:
        yield url


@pytest.fixture(scope="package")
def spark(url: str) -> Iterator[SparkSession]:
    """The one session. While it is there, this process is a client, as `SparkSession.builder.remote` makes it."""
    from pyspark.sql.connect.session import SparkSession as RemoteSession  # noqa: PLC0415 - needs gRPC

    with pytest.MonkeyPatch.context() as environment:
        # Not by the public builder, which refuses where a test has left its classic session
        environment.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
        session = RemoteSession.builder.remote(url).create()
        yield session  # type: ignore[misc]
        session.stop()


@pytest.fixture(autouse=True, scope="module")
def _sent_by_value(request: pytest.FixtureRequest) -> Iterator[None]:
    """The workers cannot import the tests, so their functions travel as bytecode, as a notebook's do."""
    modules: list[ModuleType] = [request.module, sys.modules[tests_of_spark.__name__]]
    for module in modules:
        cloudpickle.register_pickle_by_value(module)
    yield
    for module in modules:
        cloudpickle.unregister_pickle_by_value(module)


@pytest.fixture
def service() -> Iterator[tests_of_spark.Service]:
    """A service of the test's own."""
    made = tests_of_spark.Service()
    yield made
    made.stop()
