"""Metrics of a query's calls. Spark sums them up, so that each call counts exactly once."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from typing import Any

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from trio_asyncio_io import ElementTimeoutError, Statistics, Totals, Verdict
from trio_asyncio_io.embedding import Summary, duration, gates_and_hedges
from trio_asyncio_io.gates import PerKey

from .._sent.cluster_rate import SOURCE_AWAY
from .._sent.column_types import METRICS_COLUMN
from .._sent.settings import Settings

__all__ = ["SUMS", "called_rows", "check_metrics", "explain", "gate_classes", "observed", "observed_sums", "summary"]

# Rank error of Spark's quantile sketch: one row in this many
SKETCH_ACCURACY = 10_000

SUMS = frozenset({"rows", "calls", "retried", "failed", "timed_out", "cached", "seconds", "slowest"})

# A sum that only `explain` reads: the totals as JSON. Spark cuts off the text of a plan at more than 25 metrics, or
# arguments of one function, and warns of it.
TOTALS = "explain"
ARGUMENTS = 24
KINDS: dict[Any, Callable[[Any], Any]] = {"int": int, "float": float}
NUMBERS = [each for each in fields(Totals) if each.type in KINDS]
BY_GATE = "seconds_by_gate."  # followed by the label of a gate
REFUSAL = "refusal"

SCOPE = (
    "Each task has its own operator and capacity. Only the time from a task's first call to its last is included, of "
    "tasks whose rows reached the driver."
)
# Where the words for Spark differ from those for one operator
ADVICE = {
    "consumer": "Spark reads the results too slowly. Make what follows in the same stage faster, or use more tasks.",
    "cpu": "More capacity changes nothing: use more tasks on free cores, or move computations out of the event loop.",
}
CHECK_SOURCE = (
    "The source of the cluster_rate was away, and calls waited for it. Check that the workers can reach it: the logger "
    '"udfs" of a worker says which source it is, and why it could not be reached.'
)
PERCENTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


def check_metrics(metrics: Any) -> None:
    """Check the argument `metrics`.

    Raises:
        TypeError: It is neither a name nor an `Observation`.
    """
    if not (isinstance(metrics, str) and metrics) and not _is_observation(metrics):
        raise TypeError(f"metrics must be a name or a pyspark.sql.Observation, got {metrics!r}")


def observed(df: DataFrame, metrics: Any, gates: Iterable[str]) -> DataFrame:
    """The DataFrame without its column of metrics. Spark reports the sums of that column under the given name.

    Args:
        gates: The labels of the gates that its calls may wait for.
    """
    return df.observe(metrics, *_sums(gates)).drop(METRICS_COLUMN)


def gate_classes(settings: Settings) -> list[str]:
    """The labels that the gates of a task may have."""
    given = [each for gate in settings.options.gates for each in (gate.gates if isinstance(gate, PerKey) else [gate])]
    own = [gate.label for gate in given]
    of_cluster = [name for rate in settings.rates for name in rate.gates]
    of_budget = () if settings.budget is None else settings.budget.gates
    return list(dict.fromkeys([*own, *of_budget, *of_cluster]))


def summary(metrics: Any) -> Summary:
    """The metrics of a query's calls, in one line to print. A notebook shows its parts below each other.

    Args:
        metrics: The `Observation` that was passed as `metrics=`, after an action; or the observed `Row` or mapping,
            such as `query.lastProgress.observedMetrics["weather"]` of a streaming query.

    Example:
        >>> counts = dict(rows=3, calls=5, retried=2, failed=1, timed_out=0, cached=1)
        >>> summary(counts | dict(seconds=0.9, slowest=0.5)).split(", ")[3:6]
        ['1 failed', '0 timed out', '1 from a cache']

    Metrics that Spark has observed also have `p50`, `p95` and `p99`, which the line then ends with. With gates, the
    line also has what `trio_asyncio_io.embedding.gates_and_hedges` returns.
    """
    sums = observed_sums(metrics.get if _is_observation(metrics) else metrics)
    counts = [
        f"{sums['rows']:,} rows",
        f"{sums['calls']:,} calls",
        f"{sums['retried']:,} retried",
        f"{sums['failed']:,} failed",
        f"{sums['timed_out']:,} timed out",
        f"{sums['cached']:,} from a cache",
        *gates_and_hedges(_totals_of(json.loads(sums.get(TOTALS, "{}")))),
    ]
    mean = sums["seconds"] / sums["rows"] if sums["rows"] else 0.0
    times = {"mean": mean, "slowest": sums["slowest"], **{name: sums[name] for name in PERCENTILES if name in sums}}
    return Summary(", ".join([*counts, *(f"{name} {duration(seconds)}" for name, seconds in times.items())]))


def explain(metrics: Any, name: str | None = None) -> Verdict:
    """What limited the calls of a query, and what to change. For what `metrics=` has observed.

    The numbers of all tasks are added. They are those of the rows that reached the driver, from each task's first call
    to its last: what Spark does before and after is not included, nor are tasks that Spark retried.

    Args:
        metrics: The `Observation` that was passed as `metrics=`, after an action; a streaming query, whose recent
            micro-batches are added; or an observed `Row` or mapping of either.
        name: For a streaming query with several `metrics=`: the name of those to explain.

    Returns:
        A `Verdict`. Print it: its sentences have the numbers on which it rests, by Little's law.

    Raises:
        ValueError: These are not the metrics of an operator, or a streaming query has several and no name is given.

    Example:
        seen = Observation()
        out = ordered_wait(flights, weather, "temp double", timeout=5.0, metrics=seen)
        out.write.parquet("enriched")
        print(explain(seen))
    """
    if hasattr(metrics, "recentProgress"):
        totals = sum(map(_totals, _micro_batches(metrics, name)), Totals())
    else:
        totals = _totals(observed_sums(metrics.get if _is_observation(metrics) else metrics))
    verdict = totals.explain()
    sentences = (*verdict.sentences, SCOPE) if verdict.limit != "unknown" else verdict.sentences
    away = totals.seconds_by_gate.get(SOURCE_AWAY, 0.0)
    is_away = verdict.limit == "gate" and 2 * away >= sum(totals.seconds_by_gate.values())
    advice = CHECK_SOURCE if is_away else ADVICE.get(verdict.limit, verdict.advice)
    return replace(verdict, sentences=sentences, advice=advice)


def called_rows(metrics: Any, group: int) -> Statistics:
    """The rows of a query that were not answered from a cache, as the statistics of one operator.

    Args:
        metrics: As for `summary`.
        group: How many rows are one call.
    """
    sums = observed_sums(metrics.get if _is_observation(metrics) else metrics)
    failed, timed_out = sums["failed"], sums["timed_out"]
    return Statistics(
        completed=sums["rows"] - sums["cached"] - failed,
        retried=sums["retried"],
        failed=failed - timed_out,
        timed_out=timed_out,
        latency_seconds=sums["seconds"],
        groups=1,
        grouped=group,
    )


def _micro_batches(query: Any, name: str | None) -> list[Mapping[str, Any]]:
    """The metrics of a streaming query's recent micro-batches."""
    observed = [
        (each, sums)
        for progress in query.recentProgress
        for each, sums in progress["observedMetrics"].items()
        if name in {None, each} and TOTALS in observed_sums(sums)
    ]
    if len(names := {each for each, _ in observed}) > 1:
        raise ValueError(f"the query has several metrics, {', '.join(sorted(names))}: pass one of these names as name=")
    return [observed_sums(sums) for _, sums in observed]


def _totals(sums: Mapping[str, Any]) -> Totals:
    try:
        totals = _totals_of(json.loads(sums[TOTALS]))
    except (KeyError, TypeError, ValueError, AttributeError):
        raise ValueError(
            f"the metrics have no {TOTALS!r}: pass those of a query whose operator was given metrics="
        ) from None
    return replace(totals, longest_seconds=sums["slowest"])


def _totals_of(values: Mapping[str, Any]) -> Totals:
    """The totals from what `_merged` has written. Numbers that it lacks are 0."""
    numbers = {each.name: KINDS[each.type](values[each.name]) for each in NUMBERS if each.name in values}
    waits = {key: seconds for key, seconds in values.items() if key.startswith(BY_GATE) and seconds}
    by_gate = {key.removeprefix(BY_GATE): seconds for key, seconds in waits.items()}
    return Totals(**numbers, seconds_by_gate=by_gate, refusal=values.get(REFUSAL, ""))


def observed_sums(observed: Any) -> Mapping[str, Any]:
    """Observed metrics by name, from a `Row` or a mapping."""
    mapping: Mapping[str, Any] = observed.asDict() if hasattr(observed, "asDict") else observed
    if mapping.keys() == {"values", "schema"}:  # in the progress of a remote stream, a row is an object of these two
        return dict(zip((each["name"] for each in mapping["schema"]["fields"]), mapping["values"], strict=True))
    return mapping


def _is_observation(value: object) -> bool:
    """Whether it is an `Observation`. Spark Connect has a class of its own, whose import needs gRPC."""
    remote = sys.modules.get("pyspark.sql.connect.observation")
    return isinstance(value, Observation) or (remote is not None and isinstance(value, remote.Observation))


def _sums(gates: Iterable[str]) -> list[Column]:
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
        _merged(row["totals"], gates).alias(TOTALS),
    ]


def _merged(totals: Column, gates: Iterable[str]) -> Column:
    """The totals of all tasks, as a JSON object: by name, and the waits for each gate by its label.

    Not with `to_json`: several threads of Spark may read the metrics of a query, and its generator is for one.
    """
    merged = {each.name: _merge(each.name)(totals[each.name]) for each in NUMBERS}
    by_gate = {BY_GATE + gate: _merge(gate)(totals["seconds_by_gate"][gate]) for gate in gates}
    refusal = {REFUSAL: F.coalesce(F.max(totals[REFUSAL]), F.lit('""'))}  # JSON already
    columns = merged | by_gate | refusal
    pairs = [F.concat(F.lit(f"{json.dumps(name)}: "), column) for name, column in columns.items()]
    parts = [pairs[start : start + ARGUMENTS] for start in range(0, len(pairs), ARGUMENTS)]
    return F.concat(F.lit("{"), F.concat_ws(", ", *(F.concat_ws(", ", *part) for part in parts)), F.lit("}"))


def _merge(name: str) -> Callable[[Column], Column]:
    merge = F.max if name in Totals.HIGHEST else F.sum
    return lambda column: F.coalesce(merge(column).cast("double"), F.lit(0.0)).cast("string")


def _percentile(column: Column, share: float) -> Column:
    return F.coalesce(F.percentile_approx(column, share, SKETCH_ACCURACY), F.lit(0.0))


def _sum(column: Column) -> Column:
    return F.coalesce(F.sum(column), F.lit(0))
