"""How a cluster's rate is divided over the tasks."""

from __future__ import annotations

import math
import pickle
from typing import Any

import pytest

from udfs._plan.rate import check_rate, gate_of_rate
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


@pytest.mark.parametrize("rate", [True, "500", None])
def test_a_rate_must_be_a_number(rate: Any) -> None:
    with pytest.raises(TypeError, match="cluster_rate must be calls per second as a number, got"):
        check_rate(rate)


@pytest.mark.parametrize("rate", [0, -1.0, math.inf, math.nan])
def test_a_rate_must_be_above_0_and_finite(rate: float) -> None:
    with pytest.raises(ValueError, match="cluster_rate must be calls per second above 0 and finite, got"):
        check_rate(rate)
