"""Record batches: input batches, from which rows are taken in any order, and slices of a limited size."""

from __future__ import annotations

import weakref
from datetime import datetime
from functools import partial
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import udfs._spark_thread.batches
from udfs._sent.row import Row
from udfs._spark_thread.batches import InputBatches, ranges, slices

TYPES = {
    "null": (pa.null(), None),
    "name": (pa.string(), "Zürich"),
    "at": (pa.timestamp("us", "America/New_York"), datetime(2013, 7, 1, 12)),
    "list": (pa.list_(pa.list_(pa.int32())), [[1, None], None, []]),
    "map": (pa.map_(pa.string(), pa.struct([("x", pa.float64())])), [("a", {"x": None}), ("b", None)]),
    "struct": (pa.struct([("tags", pa.list_(pa.string())), ("n", pa.int8())]), {"tags": ["a", None], "n": 1}),
    "interval": (pa.month_day_nano_interval(), pa.scalar((1, 2, 3), pa.month_day_nano_interval()).as_py()),
}


def batch(*values: Any, names: Any = ("n",)) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(values)], names=list(names))


def rows_at(*places: tuple[int, int]) -> list[Row]:
    return [Row((), number, index) for number, index in places]


def take(batches: InputBatches, rows: list[Row]) -> pa.RecordBatch:
    """Take and release rows. Returns the only batch."""
    [found] = batches.take(rows)
    batches.release(rows)
    return found


@pytest.fixture
def batches() -> InputBatches:
    return InputBatches()


def column(found: pa.RecordBatch) -> list[Any]:
    return list(found.column(0).to_pylist())


def test_rows_that_follow_each_other_are_not_copied(batches: InputBatches) -> None:
    whole = batch(1, 2, 3, 4)
    number = batches.add(whole)
    found = take(batches, rows_at((number, 1), (number, 2)))
    assert column(found) == [2, 3]
    assert found.column(0).buffers()[1].address == whole.column(0).buffers()[1].address


def test_a_batch_is_dropped_when_its_last_row_is_released(batches: InputBatches) -> None:
    large, small = batch(1, 2), batch(3)
    alive = {"large": weakref.ref(large), "small": weakref.ref(small)}
    one, two = batches.add(large), batches.add(small)
    del large, small
    batches.release(rows_at((one, 1), (two, 0)))
    assert [name for name, reference in alive.items() if reference()] == ["large"]
    batches.release(rows_at((one, 0)))
    assert [name for name, reference in alive.items() if reference()] == []


def test_take_repeats_a_row_as_often_as_it_is_given(batches: InputBatches) -> None:
    one = batches.add(batch("a", "b"))
    [found] = batches.take(rows_at((one, 1), (one, 1), (one, 0), (one, 0), (one, 0)), 3)
    assert column(found) == ["b", "b", "a", "a", "a"]


def test_take_returns_no_batch_for_no_rows(batches: InputBatches) -> None:
    batches.add(batch("a"))
    assert list(batches.take([])) == []


@pytest.mark.parametrize("name", TYPES)
def test_take_preserves_every_type(batches: InputBatches, name: str) -> None:
    kind, value = TYPES[name]
    made = pa.RecordBatch.from_arrays([pa.array([value, None, value], kind)], names=[name])
    batches.add(made)
    batches.add(made)
    found = take(batches, rows_at((1, 1), (0, 0), (0, 1), (1, 0), (0, 2), (1, 2)))
    assert found.schema.field(0).type == kind
    assert found.column(0).to_pylist() == pa.array([None, value, None, *[value] * 3], kind).to_pylist()


def test_columns_with_one_name_are_not_confused(batches: InputBatches) -> None:
    twins = pa.RecordBatch.from_arrays([pa.array([1, 2]), pa.array(["a", "b"])], names=["n", "n"])
    for _ in range(2):
        batches.add(twins)
    found = take(batches, rows_at((0, 1), (1, 0)))
    assert [each.to_pylist() for each in found.columns] == [[2, 1], ["b", "a"]]


def test_rows_can_be_taken_in_any_order_and_any_portions(batches: InputBatches) -> None:
    random = Random(0)
    sizes = [random.randint(1, 9) for _ in range(20)]
    places = []
    for number, size in enumerate(sizes):
        assert batches.add(batch(*(1000 * number + index for index in range(size)))) == number
        places += [(number, index) for index in range(size)]
    random.shuffle(places)
    while places:
        size = random.randint(1, 17)
        piece, places = places[:size], places[size:]
        assert column(take(batches, rows_at(*piece))) == [1000 * number + index for number, index in piece]


def test_a_straggler_does_not_hold_the_memory_of_released_rows(batches: InputBatches) -> None:
    texts = [f"{number:1000}" for number in range(100)]
    whole = batch(*texts)
    reference = weakref.ref(whole)
    number = batches.add(whole)
    del whole
    batches.release(rows_at(*((number, index) for index in range(100) if index not in {40, 41})))
    assert reference() is None
    batches.release(rows_at((number, 40)))
    assert column(take(batches, rows_at((number, 41)))) == [texts[41]]


def test_rows_that_could_be_too_large_together_are_divided_into_several_batches(
    batches: InputBatches, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(udfs._spark_thread.batches, "SAFE_BYTES", 0)
    monkeypatch.setattr(udfs._spark_thread.batches, "ranges", partial(ranges, limit=2_500))
    number = batches.add(batch(*["a" * 1_000, "b" * 1_000, "c" * 5_000, "d"]))
    found = [column(each) for each in batches.take(rows_at(*[(number, n) for n in (0, 1, 1, 2, 3)]), 2)]
    assert [[text[0] for text in each] for each in found] == [["a", "b"], ["b"], ["c"], ["d"]]


# Slices


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
