"""A remote session to a Spark Connect server in another process, and the service of the tests of Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

import tests.real.spark.conftest as tests_of_spark
from tests.real.connect._server import running
from tests.support import PATIENCE

HERE = Path(__file__).parent

pytest_pyfunc_call = tests_of_spark.pytest_pyfunc_call
_sent_by_value = tests_of_spark._sent_by_value


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs Java. A hang ends the run: a thread that waits for the server cannot be interrupted."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker("spark")
            item.add_marker("connect")
            item.add_marker(pytest.mark.timeout(3 * PATIENCE, method="thread"))
            if pyspark.__version__.startswith("3.5."):
                item.add_marker(pytest.mark.skip(reason="the package of PySpark 3.5 has no Connect server"))


@pytest.fixture(scope="package")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of the server of all these tests."""
    with running(tmp_path_factory.mktemp("server")) as url:
        yield url


@pytest.fixture(scope="package")
def spark(url: str) -> Iterator[SparkSession]:
    """The session of all these tests. While it exists, this process is a client of the server."""
    from pyspark.sql.connect.session import SparkSession as RemoteSession  # noqa: PLC0415 - needs gRPC

    with pytest.MonkeyPatch.context() as environment:
        # Not with the public builder, which refuses if a test has left its classic session
        environment.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
        session = RemoteSession.builder.remote(url).create()
        yield session  # type: ignore[misc]
        session.stop()
