"""Carried rows, written to the state store and read again."""

from __future__ import annotations

import pyarrow as pa
import pytest

import udfs._spark_thread.micro_batch
from udfs._spark_thread.micro_batch import CarriedRows

TYPES = ["string", "array<tinyint>"]


def test_rows_are_restored_from_the_state_with_their_times_and_attempts() -> None:
    """The user's columns may have the names of ours."""
    schema = pa.schema([pa.field("since", pa.string(), nullable=False), pa.field("attempts", pa.list_(pa.int8()))])
    batch = pa.RecordBatch.from_arrays([["a", "b"], pa.array([None, [1]], pa.list_(pa.int8()))], schema=schema)
    [(back, types)] = CarriedRows.from_state(CarriedRows(batch, [5, 7], [0, 2]).to_state(TYPES))
    assert types == TYPES
    assert back.rows.equals(batch)
    assert back.rows.schema.equals(schema)
    assert (back.since, back.attempts) == ([5, 7], [0, 2])


def test_rows_with_another_version_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    made = CarriedRows.new(pa.RecordBatch.from_pydict({"n": [1]}), 0)
    monkeypatch.setattr(udfs._spark_thread.micro_batch, "VERSION", b"2")
    state = list(made.to_state(TYPES))
    monkeypatch.undo()
    with pytest.raises(ValueError, match="have version b'2', but this release reads b'1': let the query drain"):
        list(CarriedRows.from_state(state))


def test_new_rows_have_the_current_time_and_no_attempts() -> None:
    made = CarriedRows.new(pa.RecordBatch.from_pydict({"n": [1, 2]}), 99)
    assert (made.since, made.attempts) == ([99, 99], [0, 0])
