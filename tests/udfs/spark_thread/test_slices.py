"""Slices of Arrow data."""

from __future__ import annotations

import pyarrow as pa
import pytest

import udfs._spark_thread.batches
from udfs._spark_thread.batches import ranges, slices


def test_small_data_is_one_slice() -> None:
    data = pa.array(["a", "b"])
    assert [each.to_pylist() for each in slices(data)] == [["a", "b"]]
    assert [len(each) for each in slices(data.slice(0, 0))] == [0]


def test_large_data_is_cut_into_even_slices_of_limited_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(udfs._spark_thread.batches, "SLICE_BYTES", 1_000)
    batch = pa.RecordBatch.from_pydict({"n": range(10), "text": ["x" * 400] * 10})
    parts = list(slices(batch))
    assert pa.Table.from_batches(parts).to_pydict() == batch.to_pydict()
    assert max(part.nbytes for part in parts) <= 1_000


def test_a_row_above_the_limit_has_its_own_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(udfs._spark_thread.batches, "SLICE_BYTES", 10)
    assert [each.to_pylist() for each in slices(pa.array(["x" * 50, "y" * 50]))] == [["x" * 50], ["y" * 50]]


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([], []),
        ([0], [(0, 1)]),
        ([0, 0, 0], [(0, 3)]),
        ([5, 5, 1], [(0, 2), (2, 3)]),
        ([11, 1, 11], [(0, 1), (1, 2), (2, 3)]),
        ([3, 3, 3, 3], [(0, 3), (3, 4)]),
    ],
)
def test_ranges_add_up_to_at_most_the_limit(sizes: list[int], expected: list[tuple[int, int]]) -> None:
    assert list(ranges(sizes, limit=10)) == expected
