"""Slices of Arrow data."""

from __future__ import annotations

import pyarrow as pa
import pytest

import udfs._spark_thread.batches
from udfs._spark_thread.batches import ranges, slices


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
