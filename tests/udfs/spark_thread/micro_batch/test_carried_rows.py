"""Carried rows, written to the state store and read again, and record batches as payloads."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import udfs._spark_thread.batches
import udfs._spark_thread.micro_batch
from udfs._spark_thread.batches import from_payload, to_payload
from udfs._spark_thread.micro_batch import CarriedRows, in_payloads

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


# Payloads


VALUES: dict[str, tuple[pa.DataType, Any]] = {
    "decimal": (pa.decimal128(38, 18), Decimal("1.000000000000000001")),
    "timestamp": (pa.timestamp("us", tz="America/New_York"), None),
    "struct": (pa.struct([("x", pa.list_(pa.struct([("y", pa.date32())])))]), {"x": [{"y": None}, None]}),
    "map": (pa.map_(pa.string(), pa.float64()), [("a", None)]),
    "null": (pa.null(), None),
}


@pytest.mark.parametrize("name", VALUES)
def test_a_payload_preserves_types_nulls_and_metadata(name: str) -> None:
    kind, value = VALUES[name]
    schema = pa.schema([pa.field("v", kind, metadata={"key": "value"}), pa.field("v", pa.int64(), nullable=False)])
    batch = pa.RecordBatch.from_arrays([pa.array([None, value, None], kind), pa.array([1, 2, 3])], schema=schema)
    back = from_payload(to_payload(batch))
    assert back.equals(batch)
    assert back.schema.equals(schema, check_metadata=True)


def test_the_payload_of_a_slice_contains_only_the_rows_of_the_slice() -> None:
    batch = pa.RecordBatch.from_pydict({"text": ["x" * 1000] * 1000})
    assert from_payload(to_payload(batch.slice(500, 1))).num_rows == 1
    assert len(to_payload(batch.slice(500, 1))) < 3000


def test_many_rows_need_several_payloads_and_no_rows_need_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(udfs._spark_thread.micro_batch, "MAX_ROWS", 3)
    batch = pa.RecordBatch.from_pydict({"n": range(7)})
    parts = [from_payload(each) for each in in_payloads(batch)]
    assert [part.num_rows for part in parts] == [3, 3, 1]
    assert pa.Table.from_batches(parts).combine_chunks().to_batches()[0].equals(batch)
    assert list(in_payloads(batch.slice(0, 0))) == []


def test_wide_rows_are_divided_into_payloads_of_limited_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(udfs._spark_thread.batches, "SLICE_BYTES", 2_500)
    batch = pa.RecordBatch.from_pydict({"text": ["x" * 1000] * 5})
    parts = [from_payload(each) for each in in_payloads(batch)]
    assert [part.num_rows for part in parts] == [1, 2, 2]
