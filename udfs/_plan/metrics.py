"""Metrics of a query's calls. Spark sums them up, so that each call counts exactly once."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from threading import Timer
from typing import Any

from pyspark.errors import PySparkAssertionError
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from trio_asyncio_io import Totals, Verdict
from trio_asyncio_io.gates import PerKey
from trio_asyncio_io.integration import TaskTimes, duration, gates_and_hedges

from .._limits.cluster_limits import SOURCE_AWAY
from .._sent.extra_columns import HIGHEST, LOWEST, METRICS_COLUMN, NUMBERS, TEXTS
from .._sent.settings import Settings

logger = logging.getLogger("udfs")

WAITING = "the metrics wait for the query to end: run an action on its DataFrame first, such as a write"
PATIENCE = 10.0  # seconds without an action, until a warning says that there must be one

# Rank error of Spark's quantile sketch: one row in this many
SKETCH_ACCURACY = 10_000

COUNTS = ("rows", "calls", "retried", "failed", "timed_out", "cached")
WORDS = {"timed_out": "timed out", "cached": "from a cache"}  # for the other counts, their names
SUMS = frozenset({*COUNTS, "seconds", "slowest"})

# A sum that only `explain` reads: the totals and times of all tasks, as a JSON object
TOTALS = "explain"
GATE_PREFIX = "seconds_by_gate."  # before the label of a gate
TASK_PREFIX = "tasks."  # before the name of a time

# Spark cuts off the text of a plan at more than 25 arguments of one function, or metrics, and warns of it
MAX_ARGUMENTS = 24

NUMBER_TYPES: dict[Any, Callable[[Any], Any]] = {"int": int, "float": float}  # by the annotation of a field

# The numbers of `Totals` that are 0 without an option
OF_GATES = frozenset({"gated", "gate_wait_seconds", "refused", "throttled"})
OF_GROUPS = frozenset({"group", "groups", "grouped", "group_wait_seconds"})
OF_RETRIES = frozenset({"repeated_seconds", "rested_seconds", "retried", "retries", "retries_denied"})
OF_KEYS = frozenset({"keyed"})
# Those that `explain` does not read
UNREAD = frozenset(
    {
        *("emitted", "skipped", "dead_lettered", "cancelled", "buffered", "at_gate", "peak_buffered"),
        "slot_wait_seconds",
    }
)

SCOPE = "Each task has its own operator and capacity. Included are tasks whose rows reached the driver."
FOUND = "Each Python worker has its own gate: shown is what the gate of the last task has found."
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


def check_metrics(metrics: Any, df: DataFrame) -> None:
    """Check the argument `metrics`.

    Raises:
        TypeError: It is neither a name nor an `Observation`, which Spark has for batch queries only.
    """
    if isinstance(metrics, str) and metrics:
        return
    if not _is_observation(metrics):
        raise TypeError(f"metrics must be a name or a pyspark.sql.Observation, got {metrics!r}")
    if df.isStreaming:
        raise TypeError('metrics of a streaming query must be a name such as "weather", got an Observation')


def observe(df: DataFrame, metrics: Any, settings: Settings) -> DataFrame:
    """The DataFrame without its column of metrics. Spark reports the sums of that column under the given name.

    Args:
        df: The rows, with the column of metrics.
        metrics: The name, or an `Observation`.
        settings: The settings of the UDF, by which some sums can only be 0.
    """
    return df.observe(metrics, *_aggregates(settings)).drop(METRICS_COLUMN)


def gate_labels(settings: Settings) -> list[str]:
    """The labels that the gates of a task may have."""
    given = [each for gate in settings.options.gates for each in (gate.gates if isinstance(gate, PerKey) else [gate])]
    own = [gate.label for gate in given]
    of_cluster = [label for limit in settings.limits for label in limit.gate_labels]
    return list(dict.fromkeys([*own, *of_cluster]))


def summary(metrics: Any) -> str:
    """The metrics of a query's calls, in one line to print.

    Args:
        metrics: The `Observation` that was passed as `metrics=`, after an action; or the observed `Row` or mapping,
            such as `query.lastProgress.observedMetrics["weather"]` of a streaming query.

    Raises:
        TypeError: `metrics` is none of these.
        ValueError: No query has this `Observation`.

    Example:
        >>> counts = dict(rows=3, calls=5, retried=2, failed=1, timed_out=0, cached=1)
        >>> summary(counts | dict(seconds=0.9, slowest=0.5)).split(", ")[3:6]
        ['1 failed', '0 timed out', '1 from a cache']

    Metrics that Spark has observed also have percentiles, with which the line then ends. With gates, the line also
    has what `trio_asyncio_io.integration.gates_and_hedges` returns.
    """
    sums = _sums_when_observed(metrics)
    counts = [f"{sums[name]:,} {WORDS.get(name, name)}" for name in COUNTS]
    counts += gates_and_hedges(_totals_from(json.loads(sums.get(TOTALS, "{}"))))
    mean = sums["seconds"] / sums["rows"] if sums["rows"] else 0.0
    times = {"mean": mean, "slowest": sums["slowest"], **{name: sums[name] for name in PERCENTILES if name in sums}}
    return ", ".join([*counts, *(f"{name} {duration(seconds)}" for name, seconds in times.items())])


def explain(metrics: Any, name: str | None = None) -> Verdict:
    """What limited the calls of a query, and what to change. Reads what `metrics=` has observed.

    The numbers of all tasks are added, without tasks that Spark retried. The first sentence has the time from the first
    task to the end of the last one, and divides it into starts of tasks, work, tails, gaps between tasks, and time
    without a task.

    Args:
        metrics: The `Observation` that was passed as `metrics=`, after an action; a streaming query, whose recent
            micro-batches are added; or an observed `Row` or mapping of either.
        name: For a streaming query with several `metrics=`: the name of those to explain. None (the default): the
            query has one.

    Returns:
        A `Verdict` to print. Its sentences have the numbers on which it rests, by Little's law.

    Raises:
        TypeError: `metrics` is none of these.
        ValueError: These are not the metrics of an operator, no query has this `Observation`, or a streaming query has
            several and no name is given.

    Example:
        seen = Observation()
        out = ordered_wait(flights, weather, "temp double", timeout=5.0, metrics=seen)
        out.write.parquet("enriched")
        print(explain(seen))
    """
    if hasattr(metrics, "recentProgress"):
        micro_batches = _micro_batches(metrics, name)
        return verdict_of(sum(map(_observed_totals, micro_batches), Totals()), TaskTimes())
    sums = _sums_when_observed(metrics)
    return verdict_of(_observed_totals(sums), _times_from(json.loads(sums[TOTALS])))


def verdict_of(totals: Totals, times: TaskTimes) -> Verdict:
    """What limited the calls of tasks, and what to change in the calls and in the tasks."""
    verdict = totals.explain()
    if verdict.limit == "unknown":
        return verdict
    away = totals.seconds_by_gate.get(SOURCE_AWAY, 0.0)
    is_away = verdict.limit == "gate" and 2 * away >= sum(totals.seconds_by_gate.values())
    advice = CHECK_SOURCE if is_away else ADVICE.get(verdict.limit, verdict.advice)
    verdict = times.applied_to(replace(verdict, advice=advice))
    scope = f"{SCOPE} {FOUND}" if totals.finding and totals.operators > 1 else SCOPE
    return replace(verdict, sentences=(*verdict.sentences, scope))


def _micro_batches(query: Any, name: str | None) -> list[Mapping[str, Any]]:
    """The metrics of a streaming query's recent micro-batches."""
    found = [
        (each, sums)
        for progress in query.recentProgress
        for each, row in progress["observedMetrics"].items()
        if name in {None, each} and TOTALS in (sums := observed_sums(row))
    ]
    if len(names := {each for each, _ in found}) > 1:
        raise ValueError(f"the query has several metrics, {', '.join(sorted(names))}: pass one of these names as name=")
    return [sums for _, sums in found]


def _observed_totals(sums: Mapping[str, Any]) -> Totals:
    try:
        totals = _totals_from(json.loads(sums[TOTALS]))
    except (KeyError, TypeError, ValueError, AttributeError):
        raise ValueError(
            f"the metrics have no {TOTALS!r}: pass those of a query whose operator was given metrics="
        ) from None
    return replace(totals, longest_seconds=sums["slowest"])


def _totals_from(values: Mapping[str, Any]) -> Totals:
    """The totals from what `_totals_column` has written. Numbers that it lacks are 0."""
    numbers = _numbers(Totals, values)
    waits = {key: seconds for key, seconds in values.items() if key.startswith(GATE_PREFIX) and seconds}
    by_gate = {key.removeprefix(GATE_PREFIX): seconds for key, seconds in waits.items()}
    return Totals(**numbers, seconds_by_gate=by_gate, **{name: values.get(name, "") for name in TEXTS})


def _times_from(values: Mapping[str, Any]) -> TaskTimes:
    """The times of the tasks, from what `_totals_column` has written."""
    found = {name.removeprefix(TASK_PREFIX): each for name, each in values.items() if name.startswith(TASK_PREFIX)}
    return TaskTimes(**_numbers(TaskTimes, found))


def _numbers(made: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    numbers = [each for each in fields(made) if each.type in NUMBER_TYPES]
    return {each.name: NUMBER_TYPES[each.type](values[each.name]) for each in numbers if each.name in values}


def observed_sums(observed: Any) -> Mapping[str, Any]:
    """Observed metrics by name, from a `Row` or a mapping.

    Raises:
        TypeError: It is neither.
    """
    mapping: Mapping[str, Any] = observed.asDict() if hasattr(observed, "asDict") else observed
    if not isinstance(mapping, Mapping):
        raise TypeError(
            "metrics must be the Observation that was passed as metrics=, an observed Row or mapping, or for explain "
            f"also a streaming query, got {observed!r}"
        )
    if mapping.keys() == {"values", "schema"}:  # in the progress of a remote stream, a row is an object of these two
        return dict(zip((each["name"] for each in mapping["schema"]["fields"]), mapping["values"], strict=True))
    return mapping


def _sums_when_observed(metrics: Any) -> Mapping[str, Any]:
    """Observed metrics by name. Those of an `Observation` wait until the first action of its query has ended.

    Raises:
        TypeError: `metrics` is neither an `Observation`, a `Row` nor a mapping.
        ValueError: No query has the `Observation`.
    """
    if not _is_observation(metrics):
        return observed_sums(metrics)
    timer = Timer(PATIENCE, logger.warning, ("%s", WAITING))
    timer.daemon = True
    timer.start()
    try:
        return observed_sums(metrics.get)
    except PySparkAssertionError as error:
        raise ValueError("no query has this Observation: pass it to an operator as metrics=") from error
    finally:
        timer.cancel()


def _is_observation(value: object) -> bool:
    """Whether it is an `Observation`. Spark Connect has a class of its own, whose import needs gRPC."""
    remote = sys.modules.get("pyspark.sql.connect.observation")
    return isinstance(value, Observation) or (remote is not None and isinstance(value, remote.Observation))


def _aggregates(settings: Settings) -> list[Column]:
    sums = [_aggregate(f"rows.{name}").cast("long").alias(name) for name in COUNTS]
    times = [_aggregate(f"rows.{name}").alias(name) for name in ("seconds", "slowest")]
    shares = F.array(*map(F.lit, PERCENTILES.values()))
    found = F.percentile_approx(F.col(METRICS_COLUMN)["seconds"], shares, SKETCH_ACCURACY)
    percentiles = [F.coalesce(found[place], F.lit(0.0)).alias(name) for place, name in enumerate(PERCENTILES)]
    return [*sums, *times, *percentiles, _totals_column(settings).alias(TOTALS)]


def _totals_column(settings: Settings) -> Column:
    """The totals and times of all tasks, as a JSON object: by name, and the waits for each gate by its label.

    Not with `to_json`: several threads of Spark may read the metrics of a query, and its generator is for one.
    """
    row, gates = F.col(METRICS_COLUMN), gate_labels(settings)
    columns = {name.removeprefix("totals."): _aggregate(name).cast("string") for name in _needed(settings)}
    for gate in gates:
        waits = F.coalesce(F.sum(row["seconds_by_gate"][gate]), F.lit(0.0))
        columns[GATE_PREFIX + gate] = waits.cast("string")
    if gates:
        reported = row["numbers"][NUMBERS["tasks.ended"]]
        latest = {name: F.max_by(row[name], F.when(row[name].isNotNull(), reported)) for name in TEXTS}
        columns |= {name: F.coalesce(text, F.lit('""')) for name, text in latest.items()}  # JSON already
    pairs = [F.concat(F.lit(f"{json.dumps(name)}: "), column) for name, column in columns.items()]
    parts = [pairs[start : start + MAX_ARGUMENTS] for start in range(0, len(pairs), MAX_ARGUMENTS)]
    return F.concat(F.lit("{"), F.concat_ws(", ", *(F.concat_ws(", ", *part) for part in parts)), F.lit("}"))


def _needed(settings: Settings) -> list[str]:
    """The names of the numbers of tasks that may differ from 0 with these settings."""
    options = settings.options
    missing = {
        UNREAD: True,
        OF_GATES: not gate_labels(settings),
        OF_GROUPS: options.group is None,
        OF_RETRIES: options.retry is None,
        OF_KEYS: options.mode != "keyed",
    }
    without = {f"totals.{name}" for names, is_missing in missing.items() if is_missing for name in names}
    return [name for name in NUMBERS if not name.startswith("rows.") and name not in without]


def _aggregate(name: str) -> Column:
    """One of `NUMBERS` over all rows: its sum, or its highest or lowest value."""
    number = F.col(METRICS_COLUMN)["numbers"][NUMBERS[name]]
    if name in LOWEST:
        merged = F.min(F.when(number > 0, number))
    else:
        merged = F.max(number) if name in HIGHEST else F.sum(number)
    return F.coalesce(merged, F.lit(0.0))
