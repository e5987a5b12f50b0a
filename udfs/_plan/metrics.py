"""The metrics: what the calls of a query came to, counted by Spark, so that each reaches the driver exactly once."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it

from trio_asyncio_io import ElementTimeoutError

from .._task.extra_columns import METRICS_COLUMN

__all__ = ["SUMS", "as_mapping", "check_metrics", "observed", "summary"]

SUMS = frozenset({"rows", "calls", "retried", "failed", "timed_out", "cached", "seconds", "slowest"})


def check_metrics(metrics: Any) -> None:
    """Refuse what cannot be observed under.

    Raises:
        TypeError: It is neither a name nor an `Observation`.
    """
    if not (isinstance(metrics, str) and metrics) and not _is_observation(metrics):
        raise TypeError(f"metrics must be a name or a pyspark.sql.Observation, got {metrics!r}")


def observed(df: DataFrame, metrics: Any) -> DataFrame:
    """The DataFrame without its column of metrics, whose sums Spark gives to whoever observes."""
    return df.observe(metrics, *_sums()).drop(METRICS_COLUMN)


def summary(metrics: Any) -> str:
    """What a query's calls came to, in a line that one can print.

    Args:
        metrics: An `Observation` that was given as `metrics=`, after an action; or a `Row` or mapping of what it
            observed, such as `query.lastProgress.observedMetrics["weather"]` of a streaming query.

    Example:
        >>> seen = dict(rows=3, calls=5, retried=2, failed=1, timed_out=0, cached=1, seconds=0.9, slowest=0.5)
        >>> summary(seen)
        '3 rows, 5 calls, 2 retried, 1 failed, 0 timed out, 1 from a cache, mean 0.300 s, slowest 0.500 s'
    """
    seen: Mapping[str, Any] = metrics.get if _is_observation(metrics) else as_mapping(metrics)
    counts = [
        f"{seen['rows']:,} rows",
        f"{seen['calls']:,} calls",
        f"{seen['retried']:,} retried",
        f"{seen['failed']:,} failed",
        f"{seen['timed_out']:,} timed out",
        f"{seen['cached']:,} from a cache",
    ]
    mean = seen["seconds"] / seen["rows"] if seen["rows"] else 0.0
    return ", ".join([*counts, f"mean {mean:.3f} s", f"slowest {seen['slowest']:.3f} s"])


def as_mapping(seen: Any) -> Mapping[str, Any]:
    """What was observed by name, of a `Row` or of what is a mapping already."""
    mapping: Mapping[str, Any] = seen.asDict() if hasattr(seen, "asDict") else seen
    return mapping


def _is_observation(value: object) -> bool:
    """Whether it is an `Observation`. In a remote session that is another class, which needs gRPC to be imported."""
    remote = sys.modules.get("pyspark.sql.connect.observation")
    return isinstance(value, Observation) or (remote is not None and isinstance(value, remote.Observation))


def _sums() -> list[Column]:
    row = F.col(METRICS_COLUMN)
    timed_out = row["error"] == ElementTimeoutError.__name__
    return [
        F.count(row).alias("rows"),
        _sum(row["attempts"]).alias("calls"),
        _sum(F.greatest(row["attempts"] - 1, F.lit(0))).alias("retried"),
        _sum(row["error"].isNotNull().cast("int")).alias("failed"),
        _sum(timed_out.cast("int")).alias("timed_out"),
        _sum(row["cached"].cast("int")).alias("cached"),
        _sum(row["seconds"]).alias("seconds"),
        F.coalesce(F.max(row["seconds"]), F.lit(0.0)).alias("slowest"),
    ]


def _sum(column: Column) -> Column:
    return F.coalesce(F.sum(column), F.lit(0))
