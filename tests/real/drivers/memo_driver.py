"""A driver for test_memo_resume.py to kill: a job with a memo calls a service for each number and writes files.

python memo_driver.py FOLDER PORT NUMBERS [GROUP]

A task holds at most `HELD` rows that are called or whose answers are on their way to the memo. It
sends a batch to its loop when fewer rows than the buffer are unfinished.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.real.jobs import session
from tests.service import Client
from udfs import unordered_wait

CONF = {
    "spark.master": "local[2, 10]",  # two tasks, each of which is tried ten times
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "5",
}
CAPACITY = 5
HELD = CAPACITY - 1 + 5


class Many:
    """Asks for the rows of a group in one call."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def __call__(self, numbers: list[int]) -> list[str]:
        return (await self._client.ask(",".join(map(str, numbers)))).split(",")


def main(folder: Path, port: int, numbers: int, group: int | None = None) -> None:
    client = Client(port)
    enriched = unordered_wait(
        session(CONF).range(0, numbers, 1, 4),
        client.ask if group is None else Many(client),
        "answer string",
        inputs=["id"],
        memo=folder / "memo",
        capacity=CAPACITY,
        buffer=CAPACITY,
        timeout=600.0,
        group=group,
    )
    enriched.write.mode("overwrite").parquet(str(folder / "sink"))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), *map(int, sys.argv[3:]))
