"""The stateful stage, with a state store and timers in memory. Spark itself runs in tests/real/spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
import trio
from pyspark.sql import types as T  # noqa: N812 - the usual name

import udfs._spark_thread.micro_batch
from udfs import CarryOver
from udfs._sent.settings import Enrichment
from udfs._spark_thread.batches import from_payload, to_payload
from udfs._spark_thread.bridge import WaitLimit
from udfs._spark_thread.micro_batch import CarryingProcessor, unpacked

TYPES = {"bigint": T.LongType(), "int": T.IntegerType(), "string": T.StringType()}
TWICE = T.StructType([T.StructField("twice", T.LongType())])


class Handle:
    """The state and the timers of one bucket, as Spark passes them to a processor."""

    def __init__(self) -> None:
        self.state: list[tuple[bytes]] = []
        self.timers: set[int] = set()
        self.registerTimer = self.timers.add
        self.deleteTimer = self.timers.remove

    def getListState(self, name: str, schema: str) -> Any:  # noqa: N802 - Spark's
        return self

    def get(self) -> Any:
        return iter(self.state)

    def put(self, values: list[tuple[bytes]]) -> None:
        self.state = values

    def clear(self) -> None:
        self.state = []

    def listTimers(self) -> Any:  # noqa: N802 - Spark's
        return iter(self.timers)


class Time:
    def __init__(self, now: int) -> None:
        self.getCurrentProcessingTimeInMs = lambda: now


class Query:
    """One bucket over several micro-batches."""

    def __init__(self, processor: CarryingProcessor) -> None:
        self.handle = Handle()
        self.processor = processor
        processor.init(self.handle)

    def enrich(self, *numbers: list[int], now: int) -> list[int]:
        """The results in a micro-batch with new rows."""
        payloads = [to_payload(pa.RecordBatch.from_pydict({"n": pa.array(each)})) for each in numbers]
        frame = pd.DataFrame({"bucket": 0, "place": range(len(payloads), 0, -1), "payload": payloads})
        return self._results(self.processor.handleInputRows((0,), iter([frame]), Time(now)))

    def expire(self, *, now: int) -> list[int]:
        """The results in a micro-batch without new rows, in which the timer expires."""
        [timer] = self.handle.timers
        assert timer <= now
        out = self._results(self.processor.handleExpiredTimer((0,), Time(now), None))
        self.handle.deleteTimer(timer)  # as Spark does
        return out

    def _results(self, frames: Any) -> list[int]:
        return [
            n for frame in frames for payload in frame["payload"] for n in from_payload(payload)["twice"].to_pylist()
        ]


class Held:
    """Hangs at odd numbers while `hangs` is true."""

    hangs = True

    def __init__(self) -> None:
        self.calls: list[int] = []

    async def invoke(self, n: int) -> int:
        self.calls.append(n)
        if n % 2 and self.hangs:
            await trio.sleep_forever()
        return 2 * n


@pytest.fixture
def query(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Query]:
    """Creates a query whose budget is zero while the function hangs, and ample otherwise."""

    def make(function: Any, *, columns: str = "n bigint", max_rows: int = 2, mode: str = "unordered") -> Query:
        budget = lambda _, unfinished: WaitLimit(0.0 if function.hangs else 30.0, unfinished)  # noqa: E731 - it is short
        monkeypatch.setattr(udfs._spark_thread.micro_batch, "WaitLimit", budget)
        key = (0,) if mode == "keyed" else ()
        enrichment = Enrichment(settings(function, mode=mode), TWICE, "UTC", inputs=(0,), key=key)
        fields = [each.split(" ") for each in columns.split(", ")]
        made = T.StructType([T.StructField(name, TYPES[kind]) for name, kind in fields])
        return Query(CarryingProcessor(enrichment, CarryOver(max_rows=max_rows), made, in_order=mode == "keyed"))

    return make


def test_without_unfinished_rows_the_state_stays_empty_and_no_timer_is_registered(query: Any) -> None:
    function = Held()
    function.hangs = False
    made = query(function)
    assert sorted(made.enrich([2, 4], now=100)) == [4, 8]
    assert (made.handle.state, made.handle.timers) == ([], set())


def test_unfinished_rows_are_written_to_the_state_and_a_timer_is_registered(query: Any) -> None:
    made = query(Held(), max_rows=1)
    assert made.enrich([1, 2], now=100) == [4]
    assert len(made.handle.state) == 1
    assert made.handle.timers == {101}


def test_a_timer_drains_the_state_without_new_rows(query: Any) -> None:
    function = Held()
    made = query(function)
    made.enrich([1, 2, 3], now=100)
    assert made.expire(now=200) == []
    assert made.handle.timers == {201}
    function.hangs = False
    assert sorted(made.expire(now=300)) == [2, 6]
    assert (made.handle.state, made.handle.timers) == ([], set())


def test_carried_rows_are_called_before_new_rows_and_their_timer_is_deleted(query: Any) -> None:
    """The timer would enrich them a second time, with a second budget."""
    function = Held()
    made = query(function)
    made.enrich([1, 3], now=100)
    function.hangs, function.calls = False, []
    assert sorted(made.enrich([4], [6], now=200)) == [2, 6, 8, 12]
    assert function.calls[:2] == [1, 3]
    assert (made.handle.state, made.handle.timers) == ([], set())


def test_keyed_rows_are_called_in_the_order_of_their_places(query: Any) -> None:
    """The frames have descending places, because a shuffle may reorder them."""
    function = Held()
    function.hangs = False
    made = query(function, mode="keyed")
    made.enrich([4], [2], [0], now=100)
    assert function.calls == [0, 2, 4]


@pytest.mark.parametrize("columns", ["n bigint, text string", "m bigint", "n int"])
def test_rows_with_other_columns_are_refused_and_the_state_is_unchanged(query: Any, columns: str) -> None:
    made = query(Held())
    made.enrich([1], now=100)
    after = query(Held(), columns=columns)
    after.handle.state = made.handle.state
    after.handle.timers.update(made.handle.timers)
    message = f"carried over have the columns n bigint, but the stream now has {columns}: let"
    with pytest.raises(ValueError, match=message):
        after.enrich([2], now=200)
    with pytest.raises(ValueError, match=message):  # without a new row that shows the current type
        after.processor.handleExpiredTimer((0,), Time(200), None).__next__()
    assert after.handle.state == made.handle.state


def test_unpacked_restores_the_record_batches_with_the_names_of_the_plan() -> None:
    parts = [
        pa.RecordBatch.from_pydict({"n": [1, 2], "x": ["a", None]}),
        pa.RecordBatch.from_pydict({"n": [3], "x": [""]}),
    ]
    packed = pa.RecordBatch.from_pydict({"payload": [to_payload(part) for part in parts]})
    restored = list(unpacked(iter([packed]), ["_0", "_1"]))
    assert [each.schema.names for each in restored] == [["_0", "_1"]] * 2
    assert [each.rename_columns(["n", "x"]) for each in restored] == parts
