"""The sample of a job: some of its rows, and the calls for them on the driver."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import and_
from random import Random
from typing import Any

import pyarrow as pa
import trio
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual name
from pyspark.sql.types import DataType

from trio_asyncio_io import AsyncFunction, RetryStrategy
from trio_asyncio_io.integration import describe
from trio_asyncio_io.rehearsal import Sample, record

from .._memo.answers import BUCKETS
from .._plan.arguments import column_names, make_settings
from .._plan.memo import Memo, as_memo
from .._plan.memo_layout import bucket_of, calling_partitions
from .._plan.memo_query import claim, memo_settings
from .._plan.row_plan import BUCKET_COLUMN, RowPlan, plan_rows
from .._plan.schema import new_columns
from .._plan.worker_python import for_map_in_arrow
from .._sent.function import pack
from .._sent.row import Row
from .._sent.settings import Enrichment
from .._sent.signature import parameter_names
from .._spark_thread.batches import as_payloads, from_payload
from .._spark_thread.conversion import RowConversion
from .._spark_thread.memo_rows import MemoRows
from .._trio_thread.calls import as_list

PARTITION = "__udfs_partition"
LOW_LOAD = 5  # calls at once, at the lower of the two loads
SHARE_AT_LARGEST = 0.75  # of the calls of the sample, as in `record`
# Spark's samples have a random size, so more rows are drawn than are needed: by this factor, and this number
DRAWN_FACTOR, DRAWN_MORE = 1.5, 50
DISTINCT_ERROR = 0.02  # of Spark's estimate of the number of keys, relative to it


@dataclass(frozen=True, slots=True)
class JobRows:
    """The rows of a job.

    Args:
        df, function, schema, timeout, options: From the user.
    """

    df: DataFrame
    function: Any
    schema: DataType | str
    timeout: float
    options: Mapping[str, Any]

    @property
    def _inputs(self) -> list[str]:
        """The names of the input columns."""
        given = self.options.get("inputs")
        return column_names("inputs", parameter_names(self.function) if given is None else given)

    @property
    def _columns(self) -> list[Any]:
        return [F.col(f"`{name.replace('`', '``')}`") for name in dict.fromkeys(self._inputs)]

    def partitions(self) -> list[int]:
        """The number of rows of each partition that has any.

        Raises:
            ValueError: There is no row.
        """
        counted = self.df.groupBy(F.spark_partition_id().alias(PARTITION)).count().collect()
        if not counted:
            raise ValueError("df has no rows, so no call can be made: give a DataFrame with rows")
        return [row["count"] for row in sorted(counted, key=lambda row: row[PARTITION])]

    def called(self, counts: Sequence[int], share: float, remembered: int) -> list[int]:
        """How many rows of each partition need a call.

        Args:
            counts: The rows of each partition. A memo distributes them anew.
            share: The fraction of rows that needed a call before the sample; with a memo, of the rows with inputs.
            remembered: The number of the sample's answers in the memo.
        """
        if self.options.get("memo") is None:
            return [max(1, round(share * count)) for count in counts]
        key = F.struct(*self._columns)
        if self.options.get("skip_nulls"):  # null is the key of many rows, none of which is called
            key = F.when(reduce(and_, [column.isNotNull() for column in self._columns]), key)
        ((keys, rows),) = self.df.select(F.approx_count_distinct(key, DISTINCT_ERROR), F.count(key)).collect()
        partitions = calling_partitions(self.df.sparkSession)
        left = share * min(keys, rows) - remembered
        return [max(1, round(left / partitions))] * partitions

    def record(self, number: int, rows: int, load: int, **arguments: Any) -> RecordedRows:
        """Make this number of calls. Each answer is in the memo as soon as it is there.

        Args:
            number: The number of calls. With `group=`, each is for a group of rows.
            rows: The rows of the job.
            load: The largest number of calls at once.
            arguments: Others of `trio_asyncio_io.rehearsal.record`.

        Raises:
            ValueError: No row of the sample needs a call.
        """
        group = self.options.get("group") or 1
        plan, memo = self._plan(), self.options.get("memo")
        drawn = self._drawn(plan, number * group, rows)
        memo_rows = None if memo is None else _memo_rows(plan, as_memo(memo))
        found, share = _missing(plan.enrichment, memo_rows, drawn)
        if not found:
            raise ValueError("no row of the sample needs a call: the memo has their answers, or skip_nulls skips them")
        parts = [found[start : start + group] for start in range(0, len(found), group)]
        most = max(1, min(load, int(SHARE_AT_LARGEST * len(parts))))
        loads = (min(LOW_LOAD, most), most)
        written: list[Future[int]] = []

        def keep(answers: Sequence[tuple[Row, Any]]) -> None:
            if memo_rows is not None:
                written.append(writing.submit(_remember, memo_rows, answers))

        writer = nullcontext() if memo_rows is None else memo_rows.writer
        with writer, ThreadPoolExecutor(1, "udfs rehearse answers") as writing:
            function = _SampledFunction(self, keep)
            call = partial(record, parts, function, len(parts), timeout=self.timeout, loads=loads, **arguments)
            sample = _run_in_thread(call)
        return RecordedRows(sample, share, sum(each.result() for each in written))

    def _plan(self) -> RowPlan:
        """The operator on the input columns alone."""
        kept = {name: self.options[name] for name in ("show_values", "skip_nulls") if name in self.options}
        arguments: Any = {"on_error": "null", **kept}
        settings = make_settings(self.function, self.timeout, arguments, mode="unordered")
        added, flatten = new_columns(self.schema), self.options.get("flatten", False)
        return plan_rows(self.df.select(*self._columns), added, settings, inputs=self._inputs, flatten=flatten)

    def _drawn(self, plan: RowPlan, number: int, rows: int) -> pa.RecordBatch:
        """Rows from all over the DataFrame, and their buckets, as a worker gets them."""
        share = min(1.0, (DRAWN_FACTOR * number + DRAWN_MORE) / rows)
        inputs = [F.col(plan.source.columns[position]) for position in plan.enrichment.inputs]
        sampled = plan.source.withColumn(BUCKET_COLUMN, bucket_of(inputs)).sample(fraction=share)
        payloads = sampled.mapInArrow(for_map_in_arrow("as_payloads", as_payloads), "payload binary").collect()
        table = pa.Table.from_batches([from_payload(bytes(row["payload"])) for row in payloads])
        places = Random().sample(range(table.num_rows), min(number, table.num_rows))
        (batch,) = table.take(pa.array(places, pa.int64())).combine_chunks().to_batches()
        return batch


@dataclass(frozen=True, slots=True)
class RecordedRows:
    """The sample of a job.

    Attributes:
        sample: The calls.
        share: The share of rows that needed a call before the sample; with a memo, among those that `skip_nulls` keeps.
        remembered: The number of answers in the memo.
    """

    sample: Sample
    share: float
    remembered: int


def _missing(enrichment: Enrichment, memo_rows: MemoRows | None, drawn: pa.RecordBatch) -> tuple[list[Row], float]:
    """The rows that need a call, read as in a worker, and their share. With a memo, one row for each key."""
    settings = enrichment.settings
    if memo_rows is None:
        rows = RowConversion(enrichment).read(drawn)
        found = [row for row in rows if row.failure is None and not settings.skips(row)]
        return found, len(found) / len(rows)
    found = [row for part in memo_rows.parts(drawn) for row in memo_rows.missing(part)]
    nulls = [column.is_null().to_pylist() for column in drawn.columns[:-1]]  # without the bucket
    skipped = sum(map(any, zip(*nulls, strict=True))) if settings.skip_nulls else 0
    return found, (len(found) + memo_rows.waiting) / max(1, drawn.num_rows - skipped)


def _remember(memo_rows: MemoRows, answers: Sequence[tuple[Row, Any]]) -> int:
    """Write the answers of a call to the memo. Returns how many fit the schema."""
    for row, answer in answers:
        row.result = answer
        memo_rows.recorder.record([row])
    return sum(row.failure is None for row, _ in answers)


def _memo_rows(plan: RowPlan, memo: Memo) -> MemoRows:
    settings = replace(memo_settings(plan, memo, 1), in_buckets=False)
    claim(settings)
    return MemoRows(plan.enrichment, settings, range(BUCKETS))


class _SampledFunction(AsyncFunction[Any, Any]):
    """The user's function, called for the rows of a call. Each attempt gets lists and dicts of its own.

    Args:
        job_rows: Has the function.
        answer: Gets the rows of a call, each with its answer.
    """

    def __init__(self, job_rows: JobRows, answer: Callable[[Sequence[tuple[Row, Any]]], None]) -> None:
        function = pack(job_rows.function).unpack()
        self._call = getattr(function, "invoke", function)
        self._retry: RetryStrategy | None = job_rows.options.get("retry")
        self._is_group = job_rows.options.get("group") is not None
        self._answer = answer
        for name in ("open", "close", "flush"):
            if callable(method := getattr(function, name, None)):
                setattr(self, name, method)

    async def invoke(self, rows: Sequence[Row]) -> Any:
        """Call the function. A result after which the job calls again is no answer."""
        inputs = rows[0].own_inputs()
        if self._is_group:
            inputs = tuple(map(list, zip(*(row.own_inputs() for row in rows), strict=True)))
        result = await self._call(*inputs)  # which the function may change
        if self._retry is None or not self._retry.retries_result(result):
            self._answer(_answers_of_group(rows, result) if self._is_group else [(rows[0], result)])
        return result


def _answers_of_group(rows: Sequence[Row], result: Any) -> list[tuple[Row, Any]]:
    """Each row of a call with its answer. Rows whose result is an exception are left out.

    Raises:
        TypeError: The result is not a list with one item for each row. The operator refuses it as well.
    """
    results = as_list(result)
    if not isinstance(results, list | tuple) or len(results) != len(rows):
        raise TypeError(
            f"with group= the function must return a list with one result for each value, got {describe(result)} for "
            f"{len(rows)} values"
        )
    return [pair for pair in zip(rows, results, strict=True) if not isinstance(pair[1], Exception)]


def _run_in_thread(main: Callable[[], Any]) -> Any:
    """Run on Trio in another thread: this one may have a loop, as in a notebook. Ctrl-C cancels the run."""
    tokens: list[trio.lowlevel.TrioToken] = []
    scope = trio.CancelScope()

    async def run() -> Any:
        tokens.append(trio.lowlevel.current_trio_token())
        with scope:
            return await main()

    with ThreadPoolExecutor(1, "udfs rehearse") as executor:
        future = executor.submit(trio.run, run)
        try:
            return future.result()
        except KeyboardInterrupt:
            for token in tokens:
                token.run_sync_soon(scope.cancel)
            raise
