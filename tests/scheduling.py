"""How pytest-xdist divides the tests among its processes: those that share a JVM or a server run in the same one."""

from __future__ import annotations

from collections import Counter
from pathlib import PurePosixPath
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

# The groups that take longest, in the order in which they start. Spark's tests are two groups of about one length, so
# that two of the processes have a JVM from the start
LONGEST = (
    "tests/real/spark a-l",
    "tests/real/spark m-z",
    "tests/real/drivers",
    "tests/real/cluster",
    "tests/real/connect",
    "tests/rehearsal/test_forecast.py",
    "tests/real/demo",
    "tests/real/databases",
    "tests/udfs/test_rehearsal.py",
    "tests/explored/test_shell.py",
    "tests/operator/test_automatic_capacity.py",
    "tests/operator/test_interrupted_calls.py",
    "tests/gates/test_experiments.py",
    "tests/docs/test_examples.py",
    "tests/explored/test_core.py",
    "tests/gates/test_cluster_experiments.py",
    "tests/properties/test_comparison.py",
    "tests/real/notebooks",
    "tests/real/kills",
    "tests/udfs/http/test_wire.py",
)


def group_of(nodeid: str) -> str:
    """The folder of a test in tests/real, or its half; the file of any other test."""
    path = PurePosixPath(nodeid.partition("::")[0])
    if path.parts[:2] != ("tests", "real"):
        return str(path)
    half = (" a-l" if path.name < "test_m" else " m-z") if path.parts[2] == "spark" else ""
    return f"{path.parent}{half}"


def sort_by_length(items: list[pytest.Item]) -> None:
    """Put the longest groups first, then those with most tests: alone at the end, they would leave a process idle."""
    groups = {item.nodeid: group_of(item.nodeid) for item in items}
    sizes = Counter(groups.values())
    ranks = {group: rank for rank, group in enumerate(LONGEST)}
    items.sort(key=lambda item: (ranks.get(groups[item.nodeid], len(LONGEST)), -sizes[groups[item.nodeid]]))


class GroupScheduling(LoadScopeScheduling):
    """Sends each group to one process."""

    def __init__(self, config: Any, log: Any = None) -> None:
        config.option.loadscopereorder = False  # keep the order of the tests
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)
