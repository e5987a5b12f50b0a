"""How a cluster's rate is divided over the tasks."""

from __future__ import annotations

import pickle

import pytest

from udfs._plan.rate import gate_of_rate
from udfs._rate.cluster_rate import ClusterRate
from udfs._rate.share import ClusterShare


class Session:
    """A session with this master."""

    def __init__(self, master: str) -> None:
        self.conf = {"spark.master": master}


@pytest.mark.parametrize(("rate", "calls"), [(4, 1), (7.9, 1), (500, 125), (503.0, 125)])
def test_each_task_gets_an_equal_share_in_whole_calls(rate: float, calls: int) -> None:
    make = gate_of_rate(rate, Session("local[4]"))
    gate = pickle.loads(pickle.dumps(make))()
    assert isinstance(gate, ClusterShare)
    assert gate.calls == calls


def test_each_task_has_a_gate_of_its_own() -> None:
    make = gate_of_rate(8, Session("local[4]"))
    assert make() is not make()


def test_a_rate_below_one_call_per_task_is_refused() -> None:
    message = r"cluster_rate must be at least the number of tasks that can run at once, 4, .*; got 3\.5"
    with pytest.raises(ValueError, match=message):
        gate_of_rate(3.5, Session("local[4]"))


def test_an_unknown_number_of_tasks_is_reported_with_the_settings_to_change() -> None:
    with pytest.raises(ValueError, match=r"cluster_rate needs a limit of the tasks .* or use gate=RateLimit\(\.\.\.\)"):
        gate_of_rate(100, Session("yarn"))


def test_a_lease_needs_a_driver_that_workers_can_reach() -> None:
    with pytest.raises(
        ValueError, match=r"needs a thread on the driver, .* use cluster_rate=500, or the URL of a Redis"
    ):
        gate_of_rate(ClusterRate(500, by="lease"), Session("local[4]"))


def test_a_remote_session_may_lease_from_a_redis() -> None:
    given = ClusterRate(500, by="redis://:hidden@192.0.2.1/0", name="weather")
    make = gate_of_rate(given, Session("local[4]"))
    assert "hidden" not in repr(make)
    assert pickle.loads(pickle.dumps(make))() is make()


def test_each_application_has_a_lease_of_its_own_from_a_redis() -> None:
    given = ClusterRate(500, by="redis://192.0.2.1/0", name="weather")
    one, other = (Session("local[4]") for _ in range(2))
    other.conf["spark.app.id"] = "local-7"
    assert gate_of_rate(given, one)() is not gate_of_rate(given, other)()
