"""The task that runs in a thread, as Spark numbers it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from udfs import _spark_task
from udfs._spark_task import SparkTask


def test_a_task_has_the_numbers_and_the_properties_that_spark_gives_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    context = SimpleNamespace(
        stageId=lambda: 3, partitionId=lambda: 0, attemptNumber=lambda: 1, getLocalProperty={"name": "value"}.get
    )
    monkeypatch.setattr(_spark_task, "TaskContext", SimpleNamespace(get=lambda: context))
    task = SparkTask.current()
    assert task is not None
    assert str(task) == "stage 3, partition 0, attempt 1"
    assert (task.local_property("name"), task.local_property("other")) == ("value", None)


def test_a_task_of_a_streaming_query_names_its_micro_batch() -> None:
    task = SparkTask(3, 0, 1, {"streaming.sql.batchId": "7"}.get)
    assert str(task) == "micro-batch 7, stage 3, partition 0, attempt 1"


def test_outside_a_task_there_is_none() -> None:
    assert SparkTask.current() is None
