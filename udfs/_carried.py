"""The carried rows: input rows of one batch, and what must be known of each in a later micro-batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from ._payload import from_payload, in_payloads

__all__ = ["Carried"]

# They stand behind the user's columns and are found again by their place, for the user may have some of these names.
LIFE = [pa.field("since", pa.int64()), pa.field("attempts", pa.int32())]


@dataclass(frozen=True, slots=True)
class Carried:
    """Rows, and the life that they have had so far.

    Attributes:
        batch: The input rows, as Arrow.
        since: For each: the time of the micro-batch that brought it, in milliseconds since the epoch.
        attempts: For each: calls made so far.
    """

    batch: pa.RecordBatch
    since: Sequence[int]
    attempts: Sequence[int]

    @classmethod
    def fresh(cls, batch: pa.RecordBatch, now: int) -> Carried:
        """Rows that the micro-batch of this time brings."""
        return cls(batch, [now] * batch.num_rows, [0] * batch.num_rows)

    def to_state(self) -> Iterator[bytes]:
        """The values that stand for these rows in the state store."""
        life = [pa.array(self.since, pa.int64()), pa.array(self.attempts, pa.int32())]
        schema = pa.schema([*self.batch.schema, *LIFE], self.batch.schema.metadata)
        return in_payloads(pa.RecordBatch.from_arrays([*self.batch.columns, *life], schema=schema))

    @classmethod
    def from_state(cls, values: Iterable[bytes]) -> Iterator[Carried]:
        """The rows of which `to_state` made these values."""
        for value in values:
            batch = from_payload(value)
            *columns, since, attempts = batch.columns
            schema = pa.schema(list(batch.schema)[: len(columns)], batch.schema.metadata)
            rows = pa.RecordBatch.from_arrays(columns, schema=schema)
            yield cls(rows, since.to_pylist(), attempts.to_pylist())
