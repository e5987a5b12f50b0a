"""The line of a query's metrics, from sums as Spark reports them."""

from __future__ import annotations

import json
import logging
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import Observation, Row

from udfs import explain, summary
from udfs._plan import metrics

SUMS = {
    "rows": 4,
    "calls": 6,
    "retried": 2,
    "failed": 0,
    "timed_out": 0,
    "cached": 0,
    "seconds": 2.0,
    "slowest": 1.0,
}


@pytest.mark.parametrize(
    ("gates", "parts"),
    [
        ({}, []),
        ({"explain": '{"gate_wait_seconds": 0.0, "throttled": 0.0}'}, []),
        ({"explain": '{"throttled": 1212.0}'}, ["1,212 throttled"]),
        (
            {"explain": '{"gate_wait_seconds": 5, "seconds_by_gate.RateLimit": 5, "seconds_by_gate.Budget": 0}'},
            ["gated by RateLimit 5 s"],
        ),
        (
            {"explain": '{"gate_wait_seconds": 7, "seconds_by_gate.Budget": 2, "seconds_by_gate.RateLimit": 5}'},
            ["gated by RateLimit 5 s and Budget 2 s"],
        ),
        ({"explain": '{"completed": 4, "retried": 1, "hedged": 3, "hedges_won": 2}'}, ["hedged 60.0% (won 67%)"]),
    ],
    ids=["no gates", "gates without waits", "gates", "one gate", "two gates", "hedges"],
)
def test_the_line_has_what_gates_did(gates: dict[str, Any], parts: list[str]) -> None:
    line = summary(SUMS | gates)
    assert line.split(", ")[6:-2] == parts


def test_a_row_in_the_progress_of_a_remote_stream_is_read() -> None:
    fields = [{"name": name, "type": "double"} for name in SUMS]
    row = Row(values=list(SUMS.values()), schema={"type": "struct", "fields": fields})
    assert summary(row) == summary(SUMS)


@pytest.mark.parametrize("read", [explain, summary])
@pytest.mark.parametrize("given", ["calls", 5, None])
def test_what_is_no_metrics_is_refused_with_what_is_accepted(read: Any, given: object) -> None:
    with pytest.raises(TypeError, match=rf"^metrics must be the Observation .* query, got {given!r}$"):
        read(given)


@pytest.mark.parametrize("text", ["[]", "5", '{"completed": "many"}', "{"])
def test_totals_that_cannot_be_read_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^the metrics have no 'explain'"):
        explain(SUMS | {"explain": text})


@pytest.mark.parametrize(("waits", "is_named"), [((8, 2), True), ((2, 8), False)])
def test_the_advice_is_to_check_the_source_of_a_rate_if_calls_waited_for_it(
    waits: tuple[int, int], is_named: bool
) -> None:
    away, leased = waits
    by_gate = {"seconds_by_gate.ClusterRateSourceAway": away, "seconds_by_gate.ClusterLease": leased}
    run = {"operators": 1, "completed": 100, "seconds": 10, "supply": 10, "latency_seconds": 1, "capacity": 4}
    verdict = explain(
        SUMS | {"explain": json.dumps(run | {"buffer": 8, "gate_wait_seconds": 10, "gated": 10, **by_gate})}
    )
    assert verdict.limit == "gate"
    assert ("source of the cluster_rate was away" in verdict.advice) == is_named


@pytest.mark.parametrize(("tasks", "is_said"), [(1, False), (2, True)])
def test_what_a_gate_has_found_is_said_to_be_that_of_one_task(tasks: int, is_said: bool) -> None:
    run = {"completed": 100, "seconds": 10, "supply": 10, "latency_seconds": 1, "capacity": 800, "gated": 10}
    verdict = explain(SUMS | {"explain": json.dumps(run | {"operators": tasks, "finding": "20 calls at once"})})
    assert "20 calls at once." in verdict.sentences
    assert verdict.sentences[-1].endswith("of the last task has found.") == is_said


@pytest.mark.parametrize("read", [explain, summary])
def test_an_observation_of_no_query_is_refused_with_advice(read: Any) -> None:
    with pytest.raises(ValueError, match=r"^no query has this Observation: pass it to an operator as metrics=$"):
        read(Observation("unused"))


class Waiting(Observation):
    """An observation whose query has its action when something is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.is_logged = threading.Event()

    @property
    def get(self) -> dict[str, Any]:
        assert self.is_logged.wait(60.0)
        return SUMS


class Latch(logging.Handler):
    def __init__(self, event: threading.Event) -> None:
        super().__init__()
        self._event = event

    def emit(self, record: logging.LogRecord) -> None:
        self.message = record.getMessage()
        self._event.set()


def test_metrics_that_wait_for_an_action_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "PATIENCE", 0.0)
    seen = Waiting()
    handler = Latch(seen.is_logged)
    metrics.logger.addHandler(handler)
    try:
        assert summary(seen).startswith("4 rows, ")
    finally:
        metrics.logger.removeHandler(handler)
    assert handler.message.startswith("the metrics wait for the query to end: run an action on its DataFrame first")


def test_an_observation_is_refused_for_a_streaming_query() -> None:
    stream: Any = SimpleNamespace(isStreaming=True)
    with pytest.raises(TypeError, match=r"^metrics of a streaming query must be a name such as .*, got an Obs"):
        metrics.check_metrics(Observation("seen"), stream)
    metrics.check_metrics("seen", stream)
