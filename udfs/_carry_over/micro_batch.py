"""The micro-batch: what the rows of one bucket go through in it, those that were carried over to it first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import pyarrow as pa

from .._loop.bridge import enrich
from .._loop.budget import Budget
from .._row import Failure, Row
from .._task.enrichment import Enrichment
from .._task.input_batches import Carry
from .._task.output import Output
from .carried_rows import Carried
from .options import CarriedTooLongError, CarryOver

__all__ = ["MicroBatch"]


class MicroBatch:
    """Enriches rows for as long as the budget lasts, and keeps those that are unfinished then.

    Args:
        work: What becomes of a row.
        carry_over: The budget, and what else bounds the rows that are kept.
        now: When this micro-batch began, in milliseconds since the epoch: the driver's clock, the same for all tasks
            and for every repetition.
    """

    def __init__(self, work: Enrichment, carry_over: CarryOver, now: int) -> None:
        self._work = work
        self._carry_over = carry_over
        self._now = now
        self._carry = Carry()
        self._unfinished: dict[tuple[int, int], Row] = {}
        self._failed: list[Row] = []

    def run(self, parts: Iterable[Carried]) -> Iterator[pa.RecordBatch]:
        """The enriched rows, as record batches.

        Raises:
            CarriedTooLongError: A row is too old, and `on_error` is "raise".
            Exception: As in `enrich`.
        """
        output = self._work.output()
        budget = Budget(self._carry_over.budget, self._carry_over.most)
        for chunk in enrich(self._rows(parts), self._work.settings, budget):
            yield from self._out(chunk, output)
        if self._failed:
            yield from self._out(self._failed, output)

    def left(self) -> list[Carried]:
        """After `run`: the rows that are to be carried over, in the order in which they came."""
        rows = list(self._unfinished.values())
        left = []
        start = 0
        for batch in self._carry.take(rows):
            part = rows[start : start + batch.num_rows]
            start += batch.num_rows
            left.append(Carried(batch, [row.since for row in part], [row.attempts for row in part]))
        return left

    def _rows(self, parts: Iterable[Carried]) -> Iterator[list[Row]]:
        schema: pa.Schema | None = None
        for part in parts:
            schema = schema or part.batch.schema
            rows = self._work.rows(_as(schema, part.batch), self._carry)
            for row, since, attempts in zip(rows, part.since, part.attempts, strict=True):
                row.since, row.attempts = since, attempts
            self._unfinished |= {(row.batch, row.index): row for row in rows}
            self._failed += [row for row in rows if row.failure is not None or self._is_too_old(row)]
            yield [row for row in rows if row.failure is None]

    def _out(self, chunk: list[Row], output: Output) -> Iterator[pa.RecordBatch]:
        for row in chunk:
            del self._unfinished[row.batch, row.index]
        yield from self._work.batches(chunk, self._carry, output)

    def _is_too_old(self, row: Row) -> bool:
        """Whether the row must not be called again; then it has failed."""
        age = (self._now - row.since) / 1000
        if age <= self._carry_over.max_age:
            return False
        most = self._carry_over.max_age
        error = CarriedTooLongError(
            f"the row was not finished in {age:.1f} s and {row.attempts} calls: max_age is {most:g} s"
        )
        if self._work.settings.on_error == "raise":
            error.add_note(repr(row))
            raise error
        row.failure = Failure(error, row.attempts, age)
        return True


def _as(schema: pa.Schema, batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with this schema, from which it may differ by settings of the session that changed in between.

    Raises:
        ValueError: It has other types.
    """
    if batch.schema.equals(schema):
        return batch
    if (found := _columns(batch.schema)) != (wanted := _columns(schema)):
        raise ValueError(
            f"the rows that were carried over have the columns {', '.join(wanted)}, and the stream has now "
            f"{', '.join(found)}: let the query drain before its columns change"
        )
    return batch.cast(schema)


def _columns(schema: pa.Schema) -> list[str]:
    """Names and types, without what a session may set: the time zone, and whether long strings are allowed for."""
    return [f"{each.name} {re.sub(r'(?<=, tz=)[^]]*|large_| not null', '', str(each.type))}" for each in schema]
