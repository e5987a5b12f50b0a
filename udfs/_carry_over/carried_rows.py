"""The carried rows: input rows of one batch, and what must be known of each in a later micro-batch."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass

import pyarrow as pa

from .ipc import from_payload, in_payloads

__all__ = ["Carried"]

# They stand behind the user's columns and are found again by their place, for the user may have some of these names.
LIFE = [pa.field("since", pa.int64()), pa.field("attempts", pa.int32())]

VERSION = b"1"
VERSION_KEY = b"udfs.carried"
ORIGIN_KEY = b"udfs.origin"


@dataclass(frozen=True, slots=True)
class Origin:
    """What is written down about the query that carried rows over, so that a later run can be compared with it.

    Attributes:
        types: The Spark types of the columns.
        partitions: Of the stateful stage.
    """

    types: list[str]
    partitions: int


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

    def to_state(self, origin: Origin) -> Iterator[bytes]:
        """The values that stand for these rows in the state store."""
        life = [pa.array(self.since, pa.int64()), pa.array(self.attempts, pa.int32())]
        known = self.batch.schema.metadata or {}
        schema = pa.schema(
            [*self.batch.schema, *LIFE], {**known, VERSION_KEY: VERSION, ORIGIN_KEY: json.dumps(asdict(origin))}
        )
        return in_payloads(pa.RecordBatch.from_arrays([*self.batch.columns, *life], schema=schema))

    @classmethod
    def from_state(cls, values: Iterable[bytes]) -> Iterator[tuple[Carried, Origin | None]]:
        """The rows of which `to_state` made these values, and their origin; None if an older release wrote them.

        Raises:
            ValueError: Another release has made them, in another form.
        """
        for value in values:
            batch = from_payload(value)
            known = dict(batch.schema.metadata or {})
            version = known.pop(VERSION_KEY, None)
            if version != VERSION:
                raise ValueError(
                    f"the rows that were carried over have version {version!r}, and this release reads {VERSION!r}: "
                    "let the query drain with the release that wrote them"
                )
            written = known.pop(ORIGIN_KEY, None)
            origin = None if written is None else Origin(**json.loads(written))
            *columns, since, attempts = batch.columns
            schema = pa.schema(list(batch.schema)[: len(columns)], known or None)
            rows = pa.RecordBatch.from_arrays(columns, schema=schema)
            yield cls(rows, since.to_pylist(), attempts.to_pylist()), origin
