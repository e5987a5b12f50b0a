"""Carried rows: input rows, and how they are written to Spark's state store and read again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass

import pyarrow as pa

from .ipc import from_payload, in_payloads

__all__ = ["CarriedRows", "Origin"]

# The last two columns. They are found by position, because a column of the user's may have the same name.
HISTORY = [pa.field("since", pa.int64()), pa.field("attempts", pa.int32())]

VERSION = b"1"
VERSION_KEY = b"udfs.carried"
ORIGIN_KEY = b"udfs.origin"


@dataclass(frozen=True, slots=True)
class Origin:
    """The query that carried the rows over. A later run compares itself with it.

    Attributes:
        types: The Spark types of the columns.
        partitions: The number of partitions of the stateful stage.
    """

    types: list[str]
    partitions: int


@dataclass(frozen=True, slots=True)
class CarriedRows:
    """Input rows, new ones or from an earlier micro-batch.

    Attributes:
        rows: The input rows, as Arrow.
        since: When the first micro-batch of each row began, in milliseconds since the epoch.
        attempts: The calls made so far for each row.
    """

    rows: pa.RecordBatch
    since: Sequence[int]
    attempts: Sequence[int]

    @classmethod
    def new(cls, rows: pa.RecordBatch, now: int) -> CarriedRows:
        """Rows that are new in the micro-batch that began at this time."""
        return cls(rows, [now] * rows.num_rows, [0] * rows.num_rows)

    def to_state(self, origin: Origin) -> Iterator[bytes]:
        """The rows as values for the state store."""
        history = [pa.array(self.since, pa.int64()), pa.array(self.attempts, pa.int32())]
        metadata = self.rows.schema.metadata or {}
        schema = pa.schema(
            [*self.rows.schema, *HISTORY], {**metadata, VERSION_KEY: VERSION, ORIGIN_KEY: json.dumps(asdict(origin))}
        )
        return in_payloads(pa.RecordBatch.from_arrays([*self.rows.columns, *history], schema=schema))

    @classmethod
    def from_state(cls, values: Iterable[bytes]) -> Iterator[tuple[CarriedRows, Origin | None]]:
        """The rows in these values of the state store, and their origin; None if an old release wrote them.

        Raises:
            ValueError: Another release wrote them, in another format.
        """
        for value in values:
            batch = from_payload(value)
            metadata = dict(batch.schema.metadata or {})
            version = metadata.pop(VERSION_KEY, None)
            if version != VERSION:
                raise ValueError(
                    f"the rows carried over have version {version!r}, but this release reads {VERSION!r}: let the "
                    "query drain with the release that wrote them"
                )
            written = metadata.pop(ORIGIN_KEY, None)
            origin = None if written is None else Origin(**json.loads(written))
            *columns, since, attempts = batch.columns
            schema = pa.schema(list(batch.schema)[: len(columns)], metadata or None)
            rows = pa.RecordBatch.from_arrays(columns, schema=schema)
            yield cls(rows, since.to_pylist(), attempts.to_pylist()), origin
