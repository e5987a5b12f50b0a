"""Enrichment: the work of a DataFrame operator's tasks."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Literal, TypeAlias

from pyspark.sql.types import StructType

from .settings import Settings

__all__ = ["Enrichment", "Flatten"]

Flatten: TypeAlias = bool | Literal["outer"]


@dataclass(frozen=True, slots=True)
class Enrichment:
    """How a DataFrame operator enriches rows. Created on the driver, and pickled for the tasks.

    Args:
        settings: The settings of the UDF.
        added: The new columns.
        zone: The session's time zone.
        inputs: The positions of the columns that the function is called with.
        event_time: The position of the event time column, or None.
        key: The positions of the key columns, in keyed mode.
        flatten: Whether a result is a list of 0 to n outputs; "outer": a row without outputs has one null.
    """

    settings: Settings
    added: StructType
    zone: str
    _: KW_ONLY
    inputs: tuple[int, ...]
    event_time: int | None = None
    key: tuple[int, ...] = ()
    flatten: Flatten = False
