"""Processor: the stateful stage, which reads and writes Spark's state store around each micro-batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql.types import StructType

from ..._sent.carry_over import CarryOver
from ..._sent.enrichment import Enrichment
from ..tracebacks import traceback_as_note
from .buckets import partitions_of_query
from .carried_rows import CarriedRows, Origin
from .ipc import from_payload, to_payload
from .micro_batch import MicroBatch

__all__ = ["PAYLOAD", "CarryingProcessor", "unpacked"]

PAYLOAD = "payload binary"


class CarryingProcessor:
    """Spark's `StatefulProcessor` for one bucket. It has the methods of that class, whose import needs protobuf.

    All methods run in Spark's thread, because the client of the state store has one current key and no lock.

    Args:
        enrichment: How to enrich the rows.
        carry_over: The budget, and the limits of the rows that are carried over.
        columns: The input columns. The rows in the state must have the same names and types.
        partitions: The number of partitions of the stateful stage, for a Spark that does not report it.
        in_order: Whether the rows of a bucket must be called in order. All new rows are read before the first call
            then.
    """

    def __init__(
        self, enrichment: Enrichment, carry_over: CarryOver, columns: StructType, partitions: int, *, in_order: bool
    ) -> None:
        self._enrichment = enrichment
        self._carry_over = carry_over
        self._names = columns.names
        self._types = [field.dataType.simpleString() for field in columns.fields]
        self._partitions = partitions
        self._in_order = in_order

    def init(self, handle: Any) -> None:
        """Called by Spark at the start of each task and, once, on the driver."""
        self._handle = handle
        self._state = handle.getListState("carried", PAYLOAD)

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: ARG002, N802, N803 - Spark's
        """Enrich the rows carried over, then the new ones. A timer is deleted: it would enrich the former again."""
        now = timerValues.getCurrentProcessingTimeInMs()
        for timer in list(self._handle.listTimers()):
            self._handle.deleteTimer(timer)
        return self._run(self._payloads(rows), now)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:  # noqa: ARG002, N802, N803 - Spark's
        """Enrich the rows carried over. The bucket has no new ones."""
        return self._run(iter(()), timerValues.getCurrentProcessingTimeInMs())

    def handleInitialState(self, key: Any, initialState: Any, timerValues: Any) -> None:  # noqa: N802, N803 - Spark's
        """Do nothing: the operator has no initial state."""

    def close(self) -> None:
        """Do nothing: clients stay open for the next task of this process."""

    def _run(self, payloads: Iterator[bytes], now: int) -> Iterator[pd.DataFrame]:
        state = [bytes(value) for (value,) in self._state.get()]
        micro_batch = MicroBatch(self._enrichment, self._carry_over, now)
        with traceback_as_note():
            for batch in micro_batch.run(self._input(state, payloads, now)):
                yield pd.DataFrame({"payload": [to_payload(batch)]})
        origin = Origin(self._types, partitions_of_query(self._partitions))
        values = [(value,) for carried in micro_batch.unfinished() for value in carried.to_state(origin)]
        if values:
            self._state.put(values)
            self._handle.registerTimer(now + 1)  # expires in the next micro-batch
        elif state:
            self._state.clear()

    def _input(self, state: list[bytes], payloads: Iterator[bytes], now: int) -> Iterator[CarriedRows]:
        for carried, origin in CarriedRows.from_state(state):
            self._check(carried.rows.schema.names, origin)
            yield carried
        for payload in payloads:
            yield CarriedRows.new(from_payload(payload), now)

    def _check(self, names: list[str], origin: Origin | None) -> None:
        """Compare the query that carried the rows over with this one. An old release did not write its origin."""
        types = self._types if origin is None else origin.types
        if (names, types) != (self._names, self._types):
            raise ValueError(
                f"the rows carried over have the columns {_listed(names, types)}, but the stream now has "
                f"{_listed(self._names, self._types)}: let the query drain before you change its columns"
            )
        partitions = partitions_of_query(self._partitions)
        if self._in_order and origin is not None and origin.partitions != partitions:
            raise ValueError(
                f"the rows carried over are spread over {origin.partitions} partitions, but the query now has "
                f"{partitions}, so rows of one key could overtake each other: set spark.sql.shuffle.partitions to "
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
    """The record batches in the payloads of the stateful stage."""
    for batch in batches:
        for payload in batch.column(0):
            yield from_payload(payload.as_buffer())
