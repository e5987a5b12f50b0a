"""The stateful stage: Spark's state store before and after each micro-batch, and the timer that drains it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql.types import StructType

from .._task.enrichment import Enrichment
from .._task.tracebacks import traceback_as_note
from .buckets import partitions_of_query
from .carried_rows import Carried, Origin
from .ipc import from_payload, to_payload
from .micro_batch import MicroBatch
from .options import CarryOver

__all__ = ["PAYLOAD", "CarryingProcessor", "unpacked"]

PAYLOAD = "payload binary"


class CarryingProcessor:
    """Spark's `StatefulProcessor` for one bucket: it is this by its methods, as importing Spark's needs protobuf.

    Everything here runs in Spark's thread, for the state's client knows one key at a time and no lock.

    Args:
        work: What becomes of a row.
        carry_over: The budget, and what else bounds the rows in the state.
        columns: The input columns, whose names and types those of the rows in the state must have.
        partitions: Those of the stateful stage, where Spark does not say how many there are.
        in_order: Whether the order of a bucket's rows matters. Then all of a micro-batch's are read before the first.
    """

    def __init__(
        self, work: Enrichment, carry_over: CarryOver, columns: StructType, partitions: int, *, in_order: bool
    ) -> None:
        self._work = work
        self._carry_over = carry_over
        self._columns = columns.names
        self._types = [field.dataType.simpleString() for field in columns.fields]
        self._partitions = partitions
        self._in_order = in_order

    def init(self, handle: Any) -> None:
        """Called by Spark at the beginning of each task and, once, on the driver."""
        self._handle = handle
        self._state = handle.getListState("carried", PAYLOAD)

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: ARG002, N802, N803 - Spark's
        """The bucket has new rows; those that were carried over go first, and need no timer of their own any more."""
        now = timerValues.getCurrentProcessingTimeInMs()
        for timer in list(self._handle.listTimers()):
            self._handle.deleteTimer(timer)
        return self._run(self._payloads(rows), now)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:  # noqa: ARG002, N802, N803 - Spark's
        """The bucket has no new rows: go on with those that were carried over."""
        return self._run(iter(()), timerValues.getCurrentProcessingTimeInMs())

    def handleInitialState(self, key: Any, initialState: Any, timerValues: Any) -> None:  # noqa: N802, N803 - Spark's
        """There is none."""

    def close(self) -> None:
        """Called at the end of each task: what is open in this process stays so for the next."""

    def _run(self, payloads: Iterator[bytes], now: int) -> Iterator[pd.DataFrame]:
        state = [bytes(value) for (value,) in self._state.get()]
        micro_batch = MicroBatch(self._work, self._carry_over, now)
        with traceback_as_note():
            for batch in micro_batch.run(self._parts(state, payloads, now)):
                yield pd.DataFrame({"payload": [to_payload(batch)]})
        origin = Origin(self._types, partitions_of_query(self._partitions))
        left = [(value,) for part in micro_batch.left() for value in part.to_state(origin)]
        if left:
            self._state.put(left)
            self._handle.registerTimer(now + 1)  # not before the next micro-batch
        elif state:
            self._state.clear()

    def _parts(self, state: list[bytes], payloads: Iterator[bytes], now: int) -> Iterator[Carried]:
        for part, origin in Carried.from_state(state):
            self._check(part.batch.schema.names, origin)
            yield part
        for payload in payloads:
            yield Carried.fresh(from_payload(payload), now)

    def _check(self, names: list[str], origin: Origin | None) -> None:
        """Compare the query that carried the rows over with this one; an old release did not write all down."""
        types = self._types if origin is None else origin.types
        if (names, types) != (self._columns, self._types):
            raise ValueError(
                f"the rows that were carried over have the columns {_listed(names, types)}, and the stream has now "
                f"{_listed(self._columns, self._types)}: let the query drain before its columns change"
            )
        partitions = partitions_of_query(self._partitions)
        if self._in_order and origin is not None and origin.partitions != partitions:
            raise ValueError(
                f"the rows that were carried over are spread over {origin.partitions} partitions, and the query has "
                f"now {partitions}: rows of one key would overtake each other. Set spark.sql.shuffle.partitions to "
                f"{origin.partitions}"
            )

    def _payloads(self, frames: Iterator[pd.DataFrame]) -> Iterator[bytes]:
        if not self._in_order:
            return (bytes(payload) for frame in frames for payload in frame["payload"])
        slices = sorted(each for frame in frames for each in zip(frame["place"], frame["payload"], strict=True))
        return (bytes(payload) for _, payload in slices)


def _listed(names: list[str], types: list[str]) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in zip(names, types, strict=False))


def unpacked(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The record batches that the stateful stage has packed."""
    for batch in batches:
        for payload in batch.column(0):
            yield from_payload(payload.as_buffer())
