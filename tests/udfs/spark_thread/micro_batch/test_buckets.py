"""Buckets: the distribution of rows over the tasks of the stateful stage."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from udfs._sent.bucket_ids import bucket_ids, hash_of
from udfs._spark_task import SparkTask
from udfs._spark_thread.batches import from_payload
from udfs._spark_thread.micro_batch import Buckets, partitions_of_query


def batch(*numbers: int, **more: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"n": pa.array(numbers, pa.int64()), **more})


def cut(buckets: Buckets, batches: list[pa.RecordBatch], partition: int = 0) -> list[tuple[int, int, list[int]]]:
    """Bucket, place and numbers of each slice."""
    rows = [row for each in buckets.cut(iter(batches), partition) for row in each.to_pylist()]
    return [(row["bucket"], row["place"], from_payload(row["payload"])["n"].to_pylist()) for row in rows]


def test_a_batch_is_cut_into_slices_of_even_size_in_row_order() -> None:
    assert cut(Buckets((10, 20, 30), ("n",)), [batch(*range(7))]) == [
        (10, 0, [0, 1]),
        (20, 1, [2, 3]),
        (30, 2, [4, 5, 6]),
    ]


def test_small_batches_are_distributed_round_robin_and_empty_ones_are_skipped() -> None:
    slices = cut(Buckets((10, 20, 30), ("n",)), [batch(1), batch(), batch(2, 3), batch(4)])
    assert slices == [(10, 0, [1]), (20, 1, [2]), (30, 2, [3]), (10, 3, [4])]


def test_each_partition_starts_with_its_own_bucket_and_its_own_range_of_places() -> None:
    [(bucket, place, numbers)] = cut(Buckets((10, 20), ("n",)), [batch(1)], partition=3)
    assert (bucket, numbers) == (20, [1])
    assert place >= 3 << 40


@pytest.mark.parametrize("rows", range(1, 30))
@pytest.mark.parametrize("buckets", [1, 2, 7])
def test_each_row_is_in_exactly_one_slice(rows: int, buckets: int) -> None:
    slices = cut(Buckets(tuple(range(buckets)), ("n",)), [batch(*range(rows))] * 3)
    assert sorted(n for _, _, numbers in slices for n in numbers) == sorted(list(range(rows)) * 3)
    sizes = [len(numbers) for _, _, numbers in slices]
    assert max(sizes) - min(sizes) <= 1


def test_rows_with_one_hash_stay_together_in_order_and_the_hash_column_is_dropped() -> None:
    hashes = pa.array([-1, 6, 3, -5, 0], pa.int32())  # odd and even
    buckets = Buckets((10, 20), ("n",), by_hash=True)
    [out] = buckets.cut(iter([batch(1, 2, 3, 4, 5, hashes=hashes)]), 0)
    assert [from_payload(payload).schema.names for payload in out["payload"].to_pylist()] == [["n"], ["n"]]
    assert cut(buckets, [batch(1, 2, 3, 4, 5, hashes=hashes)]) == [(10, 0, [2, 5]), (20, 1, [1, 3, 4])]


@pytest.mark.parametrize("by_hash", [False, True])
def test_columns_have_the_users_names_in_a_payload(by_hash: bool) -> None:
    made = pa.RecordBatch.from_pydict({"_0": [1], "_1": ["a"]} | ({"hash": pa.array([0])} if by_hash else {}))
    [out] = Buckets((10,), ("a.b", "a.b"), by_hash=by_hash).cut(iter([made]), 0)
    [payload] = out["payload"].to_pylist()
    assert from_payload(payload).schema.names == ["a.b", "a.b"]


@pytest.mark.parametrize(("number", "expected"), [(0, 933211791), (1, -559580957), (42, 29417773)])
def test_the_hash_equals_that_of_spark(number: int, expected: int) -> None:
    """The values are those of `select hash(0), hash(1), hash(42)`."""
    assert hash_of(number) == expected


@pytest.mark.parametrize("partitions", [1, 2, 7, 200])
def test_each_partition_has_exactly_one_bucket(partitions: int) -> None:
    ids = bucket_ids(partitions)
    assert [hash_of(number) % partitions for number in ids] == list(range(partitions))


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        (None, 5),
        ({}, 5),
        ({"spark.sql.shuffle.partitions": "3"}, 3),
        ({"spark.sql.shuffle.partitions": "3", "spark.sql.streaming.internal.stateStore.partitions": "2"}, 2),
    ],
)
def test_the_number_of_partitions_is_read_from_the_local_properties_of_the_task(
    monkeypatch: pytest.MonkeyPatch, properties: Any, expected: int
) -> None:
    task = None if properties is None else SparkTask(0, 0, 0, properties.get)
    monkeypatch.setattr(SparkTask, "current", lambda: task)
    assert partitions_of_query(5) == expected
