"""The session's time zones and task slots, and the share of each task in a limit."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from udfs._plan.session import share_of, task_slots, time_zone


class Conf:
    def __init__(self, values: dict[str, str]) -> None:
        self._values = values

    def get(self, key: str, *default: str | None) -> str | None:
        return self._values.get(key, *default)


def connect_session(master: str | None = None, **conf: Any) -> Any:
    """A stand-in with a configuration only: `spark_executor_cores=4` sets `spark.executor.cores`."""
    values = {key.replace("_", "."): str(value) for key, value in conf.items()}
    return SimpleNamespace(conf=Conf(values if master is None else values | {"spark.master": master}))


def session(master: str, **conf: Any) -> Any:
    """A stand-in with a JVM that has 16 processors."""
    stub = connect_session(master, **conf)
    runtime = SimpleNamespace(availableProcessors=lambda: 16)
    lang = SimpleNamespace(Runtime=SimpleNamespace(getRuntime=lambda: runtime))
    stub._sc = SimpleNamespace(
        # as in LocalSchedulerBackend: the setting, or the cores if it is not set
        defaultParallelism=int(conf.get("spark_default_parallelism", 16)),
        _jvm=SimpleNamespace(java=SimpleNamespace(lang=lang)),
    )
    return stub


def test_the_time_zone_is_the_sessions() -> None:
    assert time_zone(connect_session(spark_sql_session_timeZone="America/New_York")) == "America/New_York"


@pytest.mark.parametrize(
    ("master", "conf", "slots"),
    [
        ("local", {}, 1),
        ("local[ 3 , 2 ]", {}, 3),
        ("local[*]", {}, 16),
        ("local[4]", {"spark_task_cpus": 2}, 2),
        ("local[2]", {"spark_task_cpus": 4}, 1),
        ("local-cluster[2,3,1024]", {"spark_task_cpus": 2}, 2),
        ("spark://here:7077", {"spark_cores_max": 12}, 12),
        ("spark://here:7077", {"spark_cores_max": 12, "spark_task_cpus": 5}, 2),
        ("local-cluster[2,3,1024]", {"spark_executor_cores": 1, "spark_executor_instances": 1}, 6),
        ("spark://here:7077", {"spark_cores_max": 12, "spark_executor_cores": 1, "spark_executor_instances": 2}, 12),
        ("yarn", {"spark_executor_cores": 4, "spark_executor_instances": 5}, 20),
        ("yarn", {"spark_executor_cores": 4, "spark_executor_instances": 5, "spark_cores_max": 2}, 20),
        ("yarn", {"spark_executor_cores": 5, "spark_executor_instances": 2, "spark_task_cpus": 2}, 4),
    ],
    ids=str,
)
def test_the_slots_are_the_tasks_that_can_run_at_once(master: str, conf: dict[str, Any], slots: int) -> None:
    assert task_slots(session(master, **conf)) == slots
    if "*" not in master:
        assert task_slots(connect_session(master, **conf)) == slots


def test_a_connect_session_without_a_master_may_have_the_settings() -> None:
    assert task_slots(connect_session(spark_executor_cores=4, spark_executor_instances=5)) == 20
    with pytest.raises(ValueError, match=r"set spark\.executor\.cores and .*, or spark\.cores\.max"):
        task_slots(connect_session())


def test_a_connect_session_cannot_count_the_processors_of_its_server() -> None:
    with pytest.raises(ValueError, match=r"does not report the processors of its server: start it with local\[N\]"):
        task_slots(connect_session("local[*]"))


@pytest.mark.parametrize("parallelism", [1, 100])
def test_default_parallelism_does_not_affect_the_slots(parallelism: int) -> None:
    """In local mode, Spark reports this setting instead of the cores."""
    assert task_slots(session("local[4]", spark_default_parallelism=parallelism)) == 4


@pytest.mark.parametrize("master", ["yarn", "spark://here:7077"])
def test_with_dynamic_allocation_max_executors_counts(master: str) -> None:
    conf = {"spark_executor_cores": 4, "spark_executor_instances": 2, "spark_dynamicAllocation_enabled": "true"}
    assert task_slots(session(master, spark_dynamicAllocation_maxExecutors=10, **conf)) == 40
    with pytest.raises(ValueError, match="cluster_capacity needs a limit of the tasks that can run at once"):
        task_slots(session(master, **conf))


@pytest.mark.parametrize("conf", [{}, {"spark_executor_cores": 4}, {"spark_executor_instances": 4}], ids=str)
def test_unknown_slots_are_reported_with_the_settings_to_change(conf: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"set spark\.executor\.cores and spark\.executor\.instances .*capacity="):
        task_slots(session("yarn", **conf))


@pytest.mark.parametrize("conf", [{}, {"spark_executor_cores": 1, "spark_executor_instances": 2}], ids=str)
def test_a_standalone_cluster_needs_spark_cores_max(conf: dict[str, Any]) -> None:
    """Spark 4.3, configured for one executor with one core, started one on each of two workers."""
    with pytest.raises(ValueError, match=r"set spark\.cores\.max \(a standalone cluster gives .*capacity="):
        task_slots(session("spark://here:7077", **conf))


@pytest.mark.parametrize(("limit", "share"), [(4, 1), (7, 1), (8, 2), (400, 100)])
def test_all_tasks_together_do_not_exceed_the_limit(limit: int, share: int) -> None:
    assert share_of(limit, session("local[4]")) == share
    assert 4 * share <= limit


@pytest.mark.parametrize("limit", [3, 0, -1])
def test_a_limit_that_cannot_be_shared_is_refused(limit: int) -> None:
    message = f"cluster_capacity must be at least the number of tasks that can run at once, 4, .*; got {limit}"
    with pytest.raises(ValueError, match=message):
        share_of(limit, session("local[4]"))


@pytest.mark.parametrize("limit", [1.5, "10", None, True])
def test_a_limit_must_be_a_whole_number(limit: Any) -> None:
    with pytest.raises(TypeError, match="cluster_capacity must be a whole number, got"):
        share_of(limit, session("local[4]"))
