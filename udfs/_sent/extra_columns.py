"""The extra columns behind the results, which report on the calls: errors, metadata, and metrics.

Spark adds up or merges the column of metrics over all rows of a query. It computes each aggregate for each row, so the
column has as few numbers as possible. The first row of each chunk has the sums of the chunk and the increase of its
task's totals; in the other rows they are null. Each row has its seconds, from which Spark computes percentiles.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.types import ArrayType, DataType, DoubleType, MapType, StringType

from trio_asyncio_io import ElementTimeoutError, Totals
from trio_asyncio_io.integration import TaskTimes

from .._tracebacks import type_name
from .arrow_types import arrow_type, struct_type
from .row import Row
from .settings import Settings

ERROR_TYPE = struct_type(type="string", message="string", attempts="integer", seconds="double")
METADATA_TYPE = struct_type(
    attempts="integer",
    seconds="double",
    cached="boolean",
    error="string",
    estimated_weight="double",
    settled_weight="double",
)

# Created once: a chunk may have only a few rows
ERROR_ARROW_TYPE = arrow_type(ERROR_TYPE)
METADATA_ARROW_TYPE = arrow_type(METADATA_TYPE)


@dataclass(frozen=True, slots=True)
class ExtraColumn:
    """A column behind the results.

    Attributes:
        name: Its name.
        dtype: Its Spark type.
        array: rows -> its values.
        option: The keyword argument that names it; "": the user does not name it.
    """

    name: str
    dtype: DataType
    array: Callable[[Sequence[Row]], pa.Array]
    option: str = ""


def extra_columns(settings: Settings) -> list[ExtraColumn]:
    """The extra columns of a UDF with these settings, in their order behind the results."""
    extras = []
    if settings.on_error == "column":
        extras.append(ExtraColumn(settings.error, ERROR_TYPE, error_array, "error"))
    if settings.metadata is not None:
        extras.append(ExtraColumn(settings.metadata, METADATA_TYPE, metadata_array, "metadata"))
    if settings.has_metrics:
        extras.append(ExtraColumn(METRICS_COLUMN, METRICS_TYPE, MetricsColumn().array))
    return extras


def error_array(rows: Sequence[Row]) -> pa.Array:
    """The column of errors; null for a row that did not fail."""
    errors = [None if row.failure is None else row.failure.as_struct() for row in rows]
    return pa.array(errors, type=ERROR_ARROW_TYPE)


def metadata_array(rows: Sequence[Row]) -> pa.Array:
    """The metadata column. Its `error` is the name of the exception's class; null for a row that did not fail."""
    values = (  # of each field: Arrow takes several times as long to read a dict for each row
        [row.attempts for row in rows],
        [row.seconds if row.failure is None else row.failure.seconds for row in rows],
        [row.cached for row in rows],
        [None if row.failure is None else type_name(row.failure.exception) for row in rows],
        [row.weights and row.weights[0] for row in rows],
        [row.weights and row.weights[1] for row in rows],
    )
    arrays = [pa.array(each, type=field.type) for each, field in zip(values, METADATA_ARROW_TYPE, strict=True)]
    return pa.StructArray.from_arrays(arrays, fields=list(METADATA_ARROW_TYPE))


# The column of metrics.

METRICS_COLUMN = "__udfs_metrics"
METRICS_TYPE = struct_type(
    seconds="double",
    numbers=ArrayType(DoubleType()),
    seconds_by_gate=MapType(StringType(), DoubleType()),
    refusal="string",
    finding="string",
)
METRICS_ARROW_TYPE = arrow_type(METRICS_TYPE)

OF_ROWS: Final = ("rows", "calls", "retried", "failed", "timed_out", "cached", "seconds", "slowest")
OF_TOTALS: Final = tuple(
    each.name for each in fields(Totals) if each.type in {"int", "float"} and each.name != "longest_seconds"
)
OF_TASKS: Final = tuple(each.name for each in fields(TaskTimes))

# The position of each number in the column: by its name, behind "rows.", "totals." or "tasks."
_GROUPS: Final = {"rows": OF_ROWS, "totals": OF_TOTALS, "tasks": OF_TASKS}
_NAMES: Final = [f"{group}.{name}" for group, names in _GROUPS.items() for name in names]
NUMBERS: Final = {name: position for position, name in enumerate(_NAMES)}
TEXTS: Final = ("refusal", "finding")
HIGHEST: Final = frozenset({"rows.slowest", "tasks.ended", *(f"totals.{name}" for name in Totals.HIGHEST)})
LOWEST: Final = frozenset({"tasks.began"})

_totals_of = attrgetter(*OF_TOTALS)
_times_of = attrgetter(*OF_TASKS)
_IS_SUM = [name not in HIGHEST | LOWEST for name in NUMBERS if not name.startswith("rows.")]
_NOTHING = (0.0,) * len(_IS_SUM)


class MetricsColumn:
    """The column of one task.

    A row has the totals of the whole task, so rows that are left out or reordered change no sum but the last.
    """

    def __init__(self) -> None:
        self._reported = (Totals(), TaskTimes())
        self._last: tuple[int, int] | None = None  # the outputs of one row may be in two arrays

    def array(self, rows: Sequence[Row]) -> pa.Array:
        """The values. Only the first output of a row counts."""
        places = [(row.batch, row.index) for row in rows]
        is_new = [place != before for place, before in zip(places, [self._last, *places], strict=False)]
        self._last = places[-1] if places else self._last
        new = rows if all(is_new) else [row for row, each in zip(rows, is_new, strict=True) if each]
        seconds = [row.seconds if row.failure is None else row.failure.seconds for row in new]
        after = [None] * (len(rows) - 1)
        gained, by_gate, texts = self._gained(rows)
        numbers = [*_sums(new, seconds), *gained]
        remaining = iter(seconds)
        values: list[list[Any]] = [
            [next(remaining) if each else None for each in is_new],
            [numbers, *after],
            [by_gate, *after],
            *([text, *after] for text in texts),
        ]
        parts = zip(values, METRICS_ARROW_TYPE, strict=True)
        arrays = [pa.array(each[: len(rows)], type=field.type) for each, field in parts]
        return pa.StructArray.from_arrays(arrays, fields=list(METRICS_ARROW_TYPE))

    def _gained(self, rows: Sequence[Row]) -> tuple[Sequence[float], list[tuple[str, float]] | None, list[str | None]]:
        """The increase of the totals since the previous report."""
        reports = (row.totals for row in rows if row.totals is not None)
        latest = max(reports, key=lambda report: report[0].seconds, default=None)
        if latest is None:
            return _NOTHING, None, [None] * len(TEXTS)
        (totals, times), (totals_before, times_before) = latest, self._reported
        self._reported = latest
        after = *_totals_of(totals), *_times_of(times)
        before = *_totals_of(totals_before), *_times_of(times_before)
        gained = [new - old if is_sum else new for new, old, is_sum in zip(after, before, _IS_SUM, strict=True)]
        known = totals_before.seconds_by_gate
        by_gate = [(name, seconds - known.get(name, 0.0)) for name, seconds in totals.seconds_by_gate.items()]
        # JSON, as `_plan.metrics` needs it
        texts = [getattr(totals, name) for name in TEXTS]
        return gained, by_gate or None, [json.dumps(text) if text else None for text in texts]


def _sums(rows: Sequence[Row], seconds: Sequence[float]) -> tuple[float, ...]:
    """The numbers of these rows, in the order of `OF_ROWS`."""
    attempts = [row.attempts for row in rows]
    failures = [row.failure.exception for row in rows if row.failure is not None]
    return (
        len(rows),
        sum(attempts),
        sum(each - 1 for each in attempts if each > 1),
        len(failures),
        sum(type_name(each) == ElementTimeoutError.__name__ for each in failures),
        sum(row.cached for row in rows),
        sum(seconds),
        max(seconds, default=0.0),
    )
