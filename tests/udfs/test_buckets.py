"""The buckets: each row goes into one of them, the same whenever the task is repeated."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from udfs._buckets import Buckets, bucket_ids
from udfs._payload import from_payload


def batch(*numbers: int, **more: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"n": pa.array(numbers, pa.int64()), **more})


def cut(buckets: Buckets, batches: list[pa.RecordBatch], partition: int = 0) -> list[tuple[int, int, list[int]]]:
    """Of each slice: its bucket, its place, its numbers."""
    rows = [row for each in buckets.cut(iter(batches), partition) for row in each.to_pylist()]
    return [(row["bucket"], row["place"], from_payload(row["payload"])["n"].to_pylist()) for row in rows]


def test_a_batch_is_cut_evenly_in_its_order() -> None:
    assert cut(Buckets((10, 20, 30)), [batch(*range(7))]) == [(10, 0, [0, 1]), (20, 1, [2, 3]), (30, 2, [4, 5, 6])]


def test_small_batches_go_round_and_empty_ones_leave_no_trace() -> None:
    slices = cut(Buckets((10, 20, 30)), [batch(1), batch(), batch(2, 3), batch(4)])
    assert slices == [(10, 0, [1]), (20, 1, [2]), (30, 2, [3]), (10, 3, [4])]


def test_each_partition_begins_with_another_bucket_and_keeps_a_place_of_its_own() -> None:
    [(bucket, place, numbers)] = cut(Buckets((10, 20)), [batch(1)], partition=3)
    assert (bucket, numbers) == (20, [1])
    assert place >= 3 << 40


@pytest.mark.parametrize("rows", range(1, 30))
@pytest.mark.parametrize("buckets", [1, 2, 7])
def test_no_row_is_lost_and_none_comes_twice(rows: int, buckets: int) -> None:
    slices = cut(Buckets(tuple(range(buckets))), [batch(*range(rows))] * 3)
    assert sorted(n for _, _, numbers in slices for n in numbers) == sorted(list(range(rows)) * 3)
    sizes = [len(numbers) for _, _, numbers in slices]
    assert max(sizes) - min(sizes) <= 1


def test_by_the_last_column_rows_of_one_value_stay_together_in_their_order_and_the_column_goes() -> None:
    chosen = pa.array([1, 0, 1, 1, 0], pa.int32())
    buckets = Buckets((10, 20), by_last_column=True)
    [out] = buckets.cut(iter([batch(1, 2, 3, 4, 5, chosen=chosen)]), 0)
    assert [from_payload(payload).schema.names for payload in out["payload"].to_pylist()] == [["n"], ["n"]]
    assert cut(buckets, [batch(1, 2, 3, 4, 5, chosen=chosen)]) == [(10, 0, [2, 5]), (20, 1, [1, 3, 4])]


class Session:
    """Has no number below 70 for the second partition."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int]] = []

    def range(self, start: int, end: int, step: int, partitions: int) -> Any:
        self.asked.append((start, end))
        rows = [SimpleNamespace(id=n, place=0 if n < 70 else 1) for n in range(start, end)]
        return SimpleNamespace(selectExpr=lambda *columns: SimpleNamespace(collect=lambda: rows))


def test_numbers_are_looked_for_until_every_partition_has_one() -> None:
    session = Session()
    assert bucket_ids(session, 2) == (0, 70)
    assert session.asked == [(0, 32), (32, 64), (64, 96)]
