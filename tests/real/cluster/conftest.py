"""A cluster, jobs that are submitted to it, and a service that counts its calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from tests.real.cluster._driver import Applications, Driver, packed
from tests.real.cluster._standalone import Cluster
from tests.service import Service
from tests.support import PATIENCE

HERE = Path(__file__).parent
USUAL: Mapping[str, str] = MappingProxyType({})


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs Java. The timeout is the last resort: each wait has a limit and a message of its own."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker("spark")
            item.add_marker(pytest.mark.timeout(6 * PATIENCE, method="thread"))
            item.add_marker(
                pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc to find processes")
            )


@pytest.fixture(scope="module")
def _cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    made = Cluster(tmp_path_factory.mktemp("cluster"))
    yield made
    made.stop()


@pytest.fixture
def cluster(_cluster: Cluster) -> Cluster:
    """The cluster, with both of its workers."""
    _cluster.complete()
    return _cluster


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packages that are sent with a job."""
    return packed(tmp_path_factory.mktemp("archive"))


@pytest.fixture(scope="module")
def _applications(_cluster: Cluster, archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Applications]:
    made = Applications(_cluster, archive, tmp_path_factory.mktemp("drivers"))
    yield made
    made.finish()


@pytest.fixture
def submit(cluster: Cluster, _applications: Applications, service: Service) -> Callable[..., Driver]:
    """Start a job with these options of the operator, and return its driver."""

    def submit(
        *, rows: int, partitions: int, cache: Path | None = None, conf: Mapping[str, str] = USUAL, **options: Any
    ) -> Driver:
        driver = _applications.get(conf)
        path = None if cache is None else str(cache)
        driver.run(port=service.client.port, rows=rows, partitions=partitions, cache=path, options=options)
        return driver

    return submit
