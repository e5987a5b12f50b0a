"""Conversion: Arrow batches to rows, and finished rows back to Arrow batches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from .._sent.row import Row
from .._sent.settings import Settings
from .bridge import enrich
from .budget import Budget

__all__ = ["Conversion"]

InputT = TypeVar("InputT")
OutputT = TypeVar("OutputT")


class Conversion(ABC, Generic[InputT, OutputT]):
    """Both ends of one run: reads batches as rows, and writes finished rows as batches.

    A run is one Spark task or, with carry-over, one bucket of a micro-batch.

    Args:
        settings: The settings of the UDF.
        budget: When the run may stop waiting for calls; None: not before the last one is finished.
    """

    def __init__(self, settings: Settings, budget: Budget | None = None) -> None:
        self.settings = settings
        self._budget = budget

    @abstractmethod
    def read(self, batch: InputT) -> list[Row]:
        """The rows of one input batch."""

    @abstractmethod
    def write(self, rows: list[Row]) -> Iterator[OutputT]:
        """Finished rows as output batches: usually one, more if the values are large."""

    def run(self, batches: Iterable[InputT]) -> Iterator[OutputT]:
        """Enrich all batches. Calls stay in flight from one batch to the next.

        Raises:
            Exception: As in `enrich`, `read` and `write`.
        """
        rows = (self.read(batch) for batch in batches)
        for finished in enrich(rows, self.settings, self._budget):
            yield from self.write(finished)
