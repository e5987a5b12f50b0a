"""The same flights as a stream: each day arrives as one file, and a streaming query enriches it.

After Ctrl-C or `kill -9` the same command continues where the stream stopped.
"""

from __future__ import annotations

import shutil
from collections import Counter, defaultdict
from datetime import date
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame
from rich.console import Console

from ..progress import progress

__all__ = ["Stream", "days_of"]

SECONDS_BETWEEN_DAYS: Final = 1


class Stream:
    """A stream in a folder of its own. A run in the folder of a completed stream starts afresh.

    Args:
        root: The folder, for the `incoming` files, the enriched `flights`, Spark's `checkpoint`, and an empty file
            `done` after the end.

    Attributes:
        incoming: The folder in which the days arrive.
        flights: The folder of the enriched flights.
        is_resumed: Whether an earlier run was stopped, so that this one continues it.
    """

    def __init__(self, root: Path) -> None:
        self.incoming, self.flights, self._checkpoint = (root / name for name in ("incoming", "flights", "checkpoint"))
        self._done = root / "done"
        if self._done.exists():
            for folder in (self.incoming, self.flights, self._checkpoint):
                if folder.exists():  # an earlier run may have been stopped here
                    shutil.rmtree(folder)
            self._done.unlink()
        self.is_resumed = self._checkpoint.exists()
        self.incoming.mkdir(parents=True, exist_ok=True)

    def run(self, enriched: DataFrame, days: dict[str, list[str]], console: Console) -> Counter[str]:
        """Start the query, let the files of the days arrive, and wait until it has enriched all of them.

        Args:
            enriched: The query, with `metrics="flights"`.
            days: The lines of each day's file.
            console: Where to show the progress.

        Returns:
            The sums of the metrics over the micro-batches of this run.
        """
        query = (
            enriched.writeStream.format("parquet")
            .option("path", str(self.flights))
            .option("checkpointLocation", str(self._checkpoint))
            .start()
        )
        with progress(enriched.sparkSession, console=console):
            for day, lines in days.items():
                if not (path := self.incoming / f"{day}.csv").exists():
                    _write(path, lines)
                    query.awaitTermination(SECONDS_BETWEEN_DAYS)  # raises the exception that ended the query
            query.processAllAvailable()
        calls = Counter[str]()
        for micro_batch in query.recentProgress:
            if metrics := micro_batch.observedMetrics.get("flights"):
                calls.update({name: metrics[name] for name in ("rows", "retried", "failed", "timed_out")})
        query.stop()
        self._done.touch()
        return calls


def days_of(path: Path, end: date) -> dict[str, list[str]]:
    """The lines of each day's file, header included, in the order of the days, up to the day before `end`."""
    with path.open(encoding="utf-8") as lines:
        header = next(lines)
        days: dict[str, list[str]] = defaultdict(lambda: [header])
        for line in lines:
            day = date(*map(int, line.split(",", 3)[:3]))
            if day < end:
                days[day.isoformat()].append(line)
    return dict(sorted(days.items()))


def _write(path: Path, lines: list[str]) -> None:
    partial = path.with_name(f".{path.name}")
    partial.write_text("".join(lines), encoding="utf-8")
    partial.rename(path)  # atomic, so that Spark never reads an incomplete day
