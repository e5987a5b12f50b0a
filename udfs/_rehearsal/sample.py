"""The sample of a job: some of its rows, and the calls for them on the driver."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from random import Random
from typing import Any

import trio
from pyspark import cloudpickle
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual name
from pyspark.sql.types import DataType, LongType, StructField, StructType

from trio_asyncio_io import AsyncFunction
from trio_asyncio_io.rehearsal import Sample, record

from .._dataframe import ordered_wait, unordered_wait
from .._plan.arguments import column_names
from .._plan.memo import as_memo, calling_partitions
from .._sent.packed_function import pack, parameter_names
from .._sent.sampling import Capture, Replay, identity_of

__all__ = ["Source"]

ROW, INPUTS, FOUND = "__udfs_row", "__udfs_inputs", "__udfs_found"
LOW_LOAD = 5
SHARE_AT_LARGEST = 0.75  # of the calls of the sample, as in `record`
MORE, AT_LEAST = 1.5, 50  # rows to draw, because a sample of Spark's has a random size
DISTINCT_ERROR = 0.02


@dataclass(frozen=True, slots=True)
class Source:
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
        return [F.col(f"`{name.replace('`', '``')}`") for name in self._inputs]

    def partitions(self) -> list[int]:
        """The number of rows of each partition that has any.

        Raises:
            ValueError: There is no row.
        """
        counted = self.df.groupBy(F.spark_partition_id().alias(ROW)).count().collect()
        if not counted:
            raise ValueError("df has no rows, so no call can be made: give a DataFrame with rows")
        return [row["count"] for row in sorted(counted, key=lambda row: row[ROW])]

    def called(self, counts: Sequence[int], share: float) -> list[int]:
        """How many rows of each partition need a call, if this share of them does. A memo distributes them anew."""
        if self.options.get("memo") is None:
            return [max(1, round(share * count)) for count in counts]
        (found,) = self.df.select(F.approx_count_distinct(F.struct(*self._columns), DISTINCT_ERROR)).collect()
        partitions = calling_partitions(self.df.sparkSession)
        return [max(1, round(share * min(found[0], sum(counts)) / partitions))] * partitions

    def record(self, number: int, rows: int, load: int, **arguments: Any) -> tuple[Sample, float]:
        """Make this number of calls. Returns the sample, and the share of rows that need a call."""
        group = self.options.get("group")
        drawn, count = self._drawn(number * (group or 1), rows)
        known = self._known(drawn)
        found = [inputs for row, inputs in self._captured(drawn) if row not in known]
        if not found:
            raise ValueError("no row of the sample needs a call: the memo has their answers, or skip_nulls skips them")
        share = len(found) / count
        if self.options.get("memo") is not None:  # a key is called once
            found = list({identity_of(inputs): inputs for inputs in found}.values())
        if group is not None:  # the arguments are columns
            groups = [found[start : start + group] for start in range(0, len(found), group)]
            found = [tuple(map(list, zip(*each, strict=True))) for each in groups]
        most = max(1, min(load, int(SHARE_AT_LARGEST * len(found))))
        loads = (min(LOW_LOAD, most), most)
        function = _OfTuple(pack(self.function).unpack())
        call = partial(record, found, function, len(found), timeout=self.timeout, loads=loads, **arguments)
        taken: Sample = _run_in_thread(call)
        self._remember(drawn, taken)
        return taken, share

    def _drawn(self, number: int, rows: int) -> tuple[DataFrame, int]:
        """Numbered rows from all over the DataFrame, and how many. They are on the driver, so they stay the same."""
        share = min(1.0, (MORE * number + AT_LEAST) / rows)
        columns = self.df.select(*self._columns)
        found = columns.sample(fraction=share).collect()
        drawn = Random().sample(found, min(number, len(found)))
        numbered = [(position, *row) for position, row in enumerate(drawn)]
        schema = StructType([StructField(ROW, LongType()), *columns.schema.fields])
        return self.df.sparkSession.createDataFrame(numbered, schema).coalesce(1), len(drawn)

    def _captured(self, drawn: DataFrame) -> list[tuple[int, tuple[Any, ...]]]:
        """The number of each row that is not skipped, and its inputs as the function gets them."""
        skips = self.options.get("skip_nulls", False)
        captured = ordered_wait(
            drawn, Capture(), f"{INPUTS} binary", inputs=self._inputs, timeout=inf, skip_nulls=skips
        )
        found = captured.select(ROW, INPUTS).collect()
        return [(row[ROW], cloudpickle.loads(bytes(row[INPUTS]))) for row in found if row[INPUTS] is not None]

    def _known(self, drawn: DataFrame) -> set[int]:
        """The numbers of the rows whose answers the memo has."""
        if self.options.get("memo") is None:
            return set()
        found = self._replayed(drawn, {}).select(ROW, F.col(f"{FOUND}.cached").alias(FOUND)).collect()
        return {row[ROW] for row in found if row[FOUND]}

    def _remember(self, drawn: DataFrame, taken: Sample) -> None:
        """Add the answers to the memo."""
        if self.options.get("memo") is not None:
            pairs = taken.answers
            if self.options.get("group") is not None:
                rows = ((zip(*arguments, strict=True), results) for arguments, results in pairs)
                pairs = [pair for each in rows for pair in zip(*each, strict=False)]
            answers = {identity_of(row): answer for row, answer in pairs if not isinstance(answer, Exception)}
            self._replayed(drawn, answers).select(ROW).collect()

    def _replayed(self, drawn: DataFrame, answers: dict[str, Any]) -> DataFrame:
        """The rows with answers of the memo, or else with these."""
        return unordered_wait(
            drawn,
            Replay(self.function, answers),
            self.schema,
            inputs=self._inputs,
            timeout=inf,
            flatten=self.options.get("flatten", False),
            on_error="null",
            metadata=FOUND,
            memo=replace(as_memo(self.options["memo"]), remember_failures_for=0.0),
        )


class _OfTuple(AsyncFunction[Any, Any]):
    """The user's function, called with the tuple of its arguments."""

    def __init__(self, function: Any) -> None:
        self._call = getattr(function, "invoke", function)
        for name in ("open", "close", "flush"):
            if callable(method := getattr(function, name, None)):
                setattr(self, name, method)

    async def invoke(self, arguments: tuple[Any, ...]) -> Any:
        """Call the function."""
        return await self._call(*arguments)


def _run_in_thread(main: Callable[[], Any]) -> Any:
    """Run on Trio in another thread: this one may have a loop, as in a notebook. Ctrl-C cancels the run."""
    cancels: list[Callable[[], Any]] = []

    async def run() -> Any:
        with trio.CancelScope() as scope:
            token = trio.lowlevel.current_trio_token()
            cancels.append(lambda: token.run_sync_soon(scope.cancel))
            return await main()

    with ThreadPoolExecutor(1, "udfs rehearse") as executor:
        future = executor.submit(trio.run, run)
        try:
            return future.result()
        except KeyboardInterrupt:
            for cancel in cancels:
                cancel()
            raise
