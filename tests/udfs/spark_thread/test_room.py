"""`buffer` and `buffer_bytes` bound what a task holds, and its calls ahead of a consumer that stalls."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any, NamedTuple
from weakref import WeakSet

import numpy as np
import pyarrow as pa
import pytest
import trio
from pyspark.sql import types as T  # noqa: N812 - the usual name

import udfs._trio_thread.room
from tests.support import PATIENCE, wait_until
from trio_asyncio_io.gates import Auto, PerKey
from udfs._sent.settings import Enrichment
from udfs._spark_thread.bridge import enrich
from udfs._spark_thread.conversion import RowConversion
from udfs._trio_thread.room import Room, nbytes_of

MIB = 2**20


class Result:
    """A result that a test can count while it is alive."""

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes


class Calls:
    """A function that counts its calls and its results."""

    def __init__(self, nbytes: int = 8) -> None:
        self.made = 0
        self.alive = WeakSet[Result]()
        self._nbytes = nbytes

    async def __call__(self, value: Any) -> Result:
        self.made += 1
        result = Result(self._nbytes)
        self.alive.add(result)
        await trio.lowlevel.checkpoint()
        return result


@pytest.mark.parametrize("mode", ["ordered", "unordered", "keyed"])
def test_a_consumer_that_stalls_has_a_buffer_and_a_chunk_of_calls_ahead(
    rows: Any, settings: Any, settled: Any, mode: str
) -> None:
    calls = Calls()
    batch = rows(range(400))
    for row in batch:
        row.key = row.index
    with closing(enrich(iter([batch]), settings(calls, mode=mode, capacity=5, buffer=20))) as chunks:
        out = len(next(chunks))
        settled()
        assert calls.made == 40  # the chunk is not written yet: it counts
        out += len(next(chunks))
        settled()
        assert 40 < calls.made <= 40 + out
        assert out + sum(map(len, chunks)) == 400


def test_results_are_alive_only_within_the_buffer_and_a_chunk(rows: Any, settings: Any) -> None:
    calls, most = Calls(), 0
    for chunk in enrich(iter([rows(range(300), n) for n in range(5)]), settings(calls, capacity=5, buffer=10)):
        most = max(most, len(calls.alive))
        del chunk
    assert calls.made == 1_500
    assert most <= 20
    assert not calls.alive


def test_a_straggler_holds_back_a_buffer_of_results(rows: Any, settings: Any, gate: Any, settled: Any) -> None:
    straggler, calls = gate(), Calls()

    async def call(value: int) -> Any:
        if value == 0:
            await straggler.wait()
        return await calls(value)

    seen: list[int] = []
    with closing(enrich(iter([rows(range(200))]), settings(call, capacity=3, buffer=8))) as chunks:
        reader = threading.Thread(target=lambda: seen.extend(len(chunk) for chunk in chunks))
        reader.start()
        straggler.wait_until_reached()
        settled()
        assert calls.made == 7  # the operator's own buffer
        straggler.open()
        reader.join(PATIENCE)
    assert sum(seen) == 200


def test_large_results_leave_less_room(rows: Any, settings: Any, settled: Any) -> None:
    calls = Calls(nbytes=1_000)
    made = settings(calls, capacity=5, buffer=1_000, buffer_bytes=50_000)
    with closing(enrich(iter([rows(range(1_000))]), made)) as chunks:
        next(chunks)
        settled()
        assert calls.made == 49  # fifty thousand bytes by the mean size, which has a byte for the row
        for _ in chunks:
            assert len(calls.alive) <= 50
    assert calls.made == 1_000


class Steady(Auto):
    """Admits as many calls as it starts with, however slow the machine is."""

    def delay(self, now: float, weight: float) -> float:
        return 0.0


@pytest.mark.parametrize("limit", [{}, {"gate": Steady(30, 30)}], ids=["a number", "a gate that starts with it"])
def test_as_many_rows_as_can_run_have_room_however_large_their_results_are(
    rows: Any, settings: Any, gate: Any, settled: Any, limit: dict[str, Any]
) -> None:
    running = Calls(nbytes=MIB)
    all_run = gate()

    async def call(value: int) -> Any:
        result = await running(value)
        if value >= 200:
            if running.made == 230:
                all_run.open()
            await all_run.wait()
        return result

    batches = iter([rows(range(200)), rows(range(200, 230), 1)])
    made = settings(call, mode="unordered", capacity=30, buffer_bytes=1, **limit)
    assert sum(map(len, enrich(batches, made))) == 230


@pytest.mark.parametrize("of_each_key", [False, True])
def test_large_results_bound_a_capacity_that_a_gate_finds(
    rows: Any, settings: Any, settled: Any, of_each_key: bool
) -> None:
    """Its upper limit is far above the calls that run, and no choice of the user."""
    calls, most = Calls(nbytes=10 * MIB), 0
    gate = PerKey(Auto(), key=lambda row: 0) if of_each_key else Auto()
    with closing(enrich(iter([rows(range(1_000))]), settings(calls, capacity=800, gate=gate))) as chunks:
        next(chunks)
        settled()
        assert calls.made <= 128  # before the size of a result was known
        written = 0
        for chunk in chunks:
            written += len(chunk)
            del chunk
            most = max(most, len(calls.alive)) if written >= 128 else 0
    assert calls.made == 1_000
    assert 0 < most <= 8


@pytest.mark.parametrize(
    ("options", "size"),
    [
        ({"capacity": 800, "gate": Auto()}, 128),  # its calls before the first answer
        ({"capacity": 800, "gate": Auto(), "group": 10}, 1_280),
        ({"capacity": 800, "gate": Auto(start=100)}, 200),
        ({"capacity": 5, "gate": Auto(most=5)}, 10),
        ({"capacity": 200}, 400),
    ],
    ids=repr,
)
def test_the_calls_before_the_first_result_have_room(settings: Any, options: dict[str, Any], size: int) -> None:
    assert Room(settings(Calls(), **options)).size == size


def test_a_key_with_many_rows_at_the_start_does_not_hold_back_the_other_keys(
    rows: Any, settings: Any, gate: Any, settled: Any
) -> None:
    """The first rows may all have one key. So in keyed mode the first ones are no fewer."""
    hot, begun = gate(), list[int]()

    async def call(value: int) -> int:
        begun.append(value)
        if value == 0:
            await hot.wait()
        return value

    batch = rows(range(200))
    for row in batch:
        row.key = 0 if row.index < 100 else row.index
    with closing(enrich(iter([batch]), settings(call, mode="keyed", capacity=10))) as chunks:
        reader = threading.Thread(target=lambda: list(chunks))
        reader.start()
        hot.wait_until_reached()
        settled()
        assert sorted(begun) == [0, *range(100, 200)]
        hot.open()
        reader.join(PATIENCE)


def test_rows_without_a_call_count_among_the_first(rows: Any, settings: Any) -> None:
    calls = Calls()
    batches = iter([rows([None] * 500), rows(range(500), 1)])
    assert sum(map(len, enrich(batches, settings(calls, capacity=20, skip_nulls=True)))) == 1_000


def test_failures_count_among_the_first(rows: Any, settings: Any) -> None:
    async def fail(value: int) -> Any:
        raise ValueError(value)

    assert sum(map(len, enrich(iter([rows(range(500))]), settings(fail, capacity=20, on_error="null")))) == 500


def test_groups_have_room_for_a_group_in_each_slot(rows: Any, settings: Any, settled: Any) -> None:
    sizes: list[int] = []

    async def call(values: list[int]) -> list[int]:
        sizes.append(len(values))
        await trio.lowlevel.checkpoint()
        return values

    made = settings(call, mode="unordered", capacity=4, group=10, group_wait=PATIENCE, buffer_bytes=1)
    assert sum(map(len, enrich(iter([rows(range(1_000))]), made))) == 1_000
    assert sizes == [10] * 100


def test_the_next_batch_is_not_read_while_rows_wait_for_room(rows: Any, settings: Any) -> None:
    """They wait for Spark's thread, which would wait for the input."""
    calls = Calls(nbytes=1_000)
    held, out = [], 0

    def batches() -> Iterator[Any]:
        for number in range(5):
            if number == 1:
                wait_until(lambda: calls.made >= 3)  # two results are enough to know their size
            held.append(number * 100 - out)
            yield rows(range(100), number)

    for chunk in enrich(batches(), settings(calls, capacity=2, buffer=1_000, buffer_bytes=5_000)):
        out += len(chunk)
    assert out == 500
    assert max(held[2:]) <= 4


def test_batches_are_read_until_the_size_of_results_is_known(rows: Any, settings: Any) -> None:
    """The first result may be that of a row in a later batch."""
    last_has_begun = trio.Event()

    async def call(value: int) -> int:
        if value == 9:
            last_has_begun.set()
        if value % 2 == 0:
            await last_has_begun.wait()
        return value

    batches = iter([rows([2 * number, 2 * number + 1], number) for number in range(5)])
    made = settings(call, capacity=6)
    assert [row.result for chunk in enrich(batches, made) for row in chunk] == list(range(10))


class Marked(float):
    """A number that keeps a mark alive."""

    mark: Result


def test_a_conversion_holds_no_results_while_it_waits(settings: Any) -> None:
    alive, most = WeakSet[Result](), 0

    async def call(value: int) -> Any:
        nonlocal most
        most = max(most, len(alive))
        result = Marked(value)
        result.mark = Result(8)
        alive.add(result.mark)
        return result

    added = T.StructType([T.StructField("temp", T.DoubleType())])
    enrichment = Enrichment(settings(call, capacity=2, buffer=4), added, "UTC", inputs=(0,))
    batches = [pa.RecordBatch.from_pydict({"n": pa.array(range(200), pa.int64())})] * 2
    assert sum(each.num_rows for each in RowConversion(enrichment).run(iter(batches))) == 400
    assert most <= 8


# Sizes


class Answer(NamedTuple):
    status: int
    body: bytes


@dataclass
class Weather:
    temp: float
    text: str


@pytest.mark.parametrize(
    ("value", "nbytes"),
    [
        (None, 8),
        (1.5, 8),
        ("x" * 100, 100),
        (b"x" * 100, 100),
        ({"a": "xx", "b": 1}, 10),
        ([1.0] * 1_536, 8 * 1_536),
        ([], 0),
        (Answer(200, b"x" * 100), 108),
        (Weather(1.0, "xxxx"), 12),
        (np.zeros(10), 80),
        (["xx", "xxxx"], 4),
    ],
    ids=repr,
)
def test_the_size_of_a_result_is_about_that_of_its_values(value: Any, nbytes: int) -> None:
    assert nbytes_of(value) == nbytes


def test_one_result_in_eight_is_measured_after_the_first_ones(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[Any] = []
    monkeypatch.setattr(udfs._trio_thread.room, "nbytes_of", lambda value: measured.append(value) or 99)
    room = Room(settings(Calls()))
    for number in range(1, 101):
        room.end(number)
    assert measured == [*range(1, 32), *range(32, 101, 8)]
    assert room.mean_nbytes == pytest.approx(100.0, rel=0.05)
