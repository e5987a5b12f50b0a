"""How pytest-xdist divides the tests among its processes: those that share a JVM or a server run in the same one."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from xdist.scheduler import LoadScopeScheduling

__all__ = ["GroupScheduling", "group_of", "rank_of"]

# The groups that take longest start first: alone at the end, they would leave the other process idle
LONGEST = (
    "tests/real/spark",
    "tests/real/demo",
    "tests/real/cluster",
    "tests/real/connect",
    "tests/real/drivers",
    "tests/docs/test_examples.py",
)


def group_of(nodeid: str) -> str:
    """The folder of a test in tests/real, the file of any other test."""
    path = PurePosixPath(nodeid.partition("::")[0])
    return str(path.parent if path.parts[:2] == ("tests", "real") else path)


def rank_of(nodeid: str) -> int:
    """The place of a test's group in the order in which groups start."""
    group = group_of(nodeid)
    return LONGEST.index(group) if group in LONGEST else len(LONGEST)


class GroupScheduling(LoadScopeScheduling):
    """Sends each group to one process."""

    def __init__(self, config: Any, log: Any = None) -> None:
        config.option.loadscopereorder = False  # keep the order of the tests
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)
