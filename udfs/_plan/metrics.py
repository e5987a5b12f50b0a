"""Metrics of a query's calls. Spark sums them up, so that each call counts exactly once."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from trio_asyncio_io import ElementTimeoutError
from trio_asyncio_io.progress import Summary

from .._task.extra_columns import METRICS_COLUMN

__all__ = ["SUMS", "as_mapping", "check_metrics", "observed", "summary"]

# Rank error of Spark's quantile sketch: one row in this many
SKETCH_ACCURACY = 10_000

SUMS = frozenset({"rows", "calls", "retried", "failed", "timed_out", "cached", "seconds", "slowest"})
PERCENTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


def check_metrics(metrics: Any) -> None:
    """Check the argument `metrics`.

    Raises:
        TypeError: It is neither a name nor an `Observation`.
    """
    if not (isinstance(metrics, str) and metrics) and not _is_observation(metrics):
        raise TypeError(f"metrics must be a name or a pyspark.sql.Observation, got {metrics!r}")


def observed(df: DataFrame, metrics: Any) -> DataFrame:
    """The DataFrame without its column of metrics. Spark reports the sums of that column under the given name."""
    return df.observe(metrics, *_sums()).drop(METRICS_COLUMN)


def summary(metrics: Any) -> Summary:
    """The metrics of a query's calls, in one line to print. A notebook shows its parts below each other.

    Args:
        metrics: The `Observation` that was passed as `metrics=`, after an action; or the observed `Row` or mapping,
            such as `query.lastProgress.observedMetrics["weather"]` of a streaming query.

    Example:
        >>> counts = dict(rows=3, calls=5, retried=2, failed=1, timed_out=0, cached=1)
        >>> summary(counts | dict(seconds=0.9, slowest=0.5)).split(", ")[3:6]
        ['1 failed', '0 timed out', '1 from a cache']

    Metrics that Spark has observed also have `p50`, `p95` and `p99`, which the line then ends with.
    """
    sums = as_mapping(metrics.get if _is_observation(metrics) else metrics)
    counts = [
        f"{sums['rows']:,} rows",
        f"{sums['calls']:,} calls",
        f"{sums['retried']:,} retried",
        f"{sums['failed']:,} failed",
        f"{sums['timed_out']:,} timed out",
        f"{sums['cached']:,} from a cache",
    ]
    mean = sums["seconds"] / sums["rows"] if sums["rows"] else 0.0
    times = {"mean": mean, "slowest": sums["slowest"], **{name: sums[name] for name in PERCENTILES if name in sums}}
    return Summary(", ".join([*counts, *(f"{name} {seconds:.3f} s" for name, seconds in times.items())]))


def as_mapping(observed: Any) -> Mapping[str, Any]:
    """Observed metrics by name, from a `Row` or a mapping."""
    mapping: Mapping[str, Any] = observed.asDict() if hasattr(observed, "asDict") else observed
    return mapping


def _is_observation(value: object) -> bool:
    """Whether it is an `Observation`. Spark Connect has a class of its own, whose import needs gRPC."""
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
        *(_percentile(row["seconds"], share).alias(name) for name, share in PERCENTILES.items()),
    ]


def _percentile(column: Column, share: float) -> Column:
    return F.coalesce(F.percentile_approx(column, share, SKETCH_ACCURACY), F.lit(0.0))


def _sum(column: Column) -> Column:
    return F.coalesce(F.sum(column), F.lit(0))
