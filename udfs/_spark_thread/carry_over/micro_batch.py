"""Micro-batch: enriches the rows of one bucket within a budget, and returns those that are unfinished after it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import pyarrow as pa

from ..._sent.carry_over import CarriedTooLongError, CarryOver
from ..._sent.enrichment import Enrichment
from ..._sent.row import Failure, Row
from ..budget import Budget
from ..conversion import Conversion
from ..row_conversion import RowConversion
from .carried_rows import CarriedRows

__all__ = ["MicroBatch"]


class MicroBatch(Conversion[CarriedRows, pa.RecordBatch]):
    """Enriches the rows of one bucket for as long as the budget lasts.

    Args:
        enrichment: How to enrich the rows.
        carry_over: The budget, and the limits of the rows that are carried over.
        now: When this micro-batch began, in milliseconds since the epoch: the driver's clock, the same for all tasks
            and for every repetition.
    """

    def __init__(self, enrichment: Enrichment, carry_over: CarryOver, now: int) -> None:
        super().__init__(enrichment.settings, Budget(carry_over.budget, carry_over.max_rows))
        self._conversion = RowConversion(enrichment)
        self._max_age = carry_over.max_age
        self._now = now
        self._schema: pa.Schema | None = None
        self._unfinished: dict[tuple[int, int], Row] = {}
        self._failed: list[Row] = []

    def run(self, batches: Iterable[CarriedRows]) -> Iterator[pa.RecordBatch]:
        """The enriched rows, and those that failed without a call.

        Raises:
            CarriedTooLongError: A row is too old, and `on_error` is "raise".
            Exception: As in `Conversion.run`.
        """
        yield from super().run(batches)
        if self._failed:
            yield from self.write(self._failed)

    def read(self, batch: CarriedRows) -> list[Row]:
        """The rows to call the function for."""
        self._schema = self._schema or batch.rows.schema
        rows = self._conversion.read(_as(self._schema, batch.rows))
        for row, since, attempts in zip(rows, batch.since, batch.attempts, strict=True):
            row.since, row.attempts = since, attempts
        self._unfinished |= {(row.batch, row.index): row for row in rows}
        self._failed += [row for row in rows if row.failure is not None or self._is_too_old(row)]
        return [row for row in rows if row.failure is None]

    def write(self, rows: list[Row]) -> Iterator[pa.RecordBatch]:
        """The enriched rows, which are finished now."""
        for row in rows:
            del self._unfinished[row.batch, row.index]
        yield from self._conversion.write(rows)

    def unfinished(self) -> list[CarriedRows]:
        """After `run`: the rows to carry over, in input order."""
        rows = list(self._unfinished.values())
        carried = []
        start = 0
        for batch in self._conversion.unwritten(rows):
            part = rows[start : start + batch.num_rows]
            start += batch.num_rows
            carried.append(CarriedRows(batch, [row.since for row in part], [row.attempts for row in part]))
        return carried

    def _is_too_old(self, row: Row) -> bool:
        """Whether the row is older than `max_age`. Then its failure is set, or raised."""
        age = (self._now - row.since) / 1000
        if age <= self._max_age:
            return False
        error = CarriedTooLongError(
            f"the row was not finished in {age:.1f} s and {row.attempts} calls: max_age is {self._max_age:g} s"
        )
        if self.settings.on_error == "raise":
            error.add_note(repr(row))
            raise error
        row.failure = Failure(error, row.attempts, age)
        return True


def _as(schema: pa.Schema, batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with this schema. Settings of the session may have changed some types since the rows were carried over.

    Raises:
        ValueError: The names or types of the columns differ.
    """
    if batch.schema.equals(schema):
        return batch
    if (found := _columns(batch.schema)) != (wanted := _columns(schema)):
        raise ValueError(
            f"the rows carried over have the columns {', '.join(wanted)}, but the stream now has {', '.join(found)}: "
            "let the query drain before you change its columns"
        )
    return batch.cast(schema)


def _columns(schema: pa.Schema) -> list[str]:
    """Names and types, without the parts that depend on settings of the session: time zone and large strings."""
    return [f"{each.name} {re.sub(r'(?<=, tz=)[^]]*|large_| not null', '', str(each.type))}" for each in schema]
